"""ONNX pairs with the signatures of the usual exporters, against the same arithmetic in NumPy."""

import numpy as np
import onnx
import onnx.parser
import pytest

from colocam.errors import ColocamError
from colocam.segment import load_segmenter, segmenter_files
from colocam.segment.segmenter import Prompts

HEADER = '<ir_version: 9, opset_import: ["" : 17]>\n'
POOL = "AveragePool <kernel_shape=[16,16], strides=[16,16]>"

SAM_ENCODER = f"""encoder (float[1,3,64,64] images) => (float[1,3,4,4] embeddings) {{ embeddings = {POOL} (images) }}"""
RAW_ENCODER = f"""encoder (float[height,width,3] input_image) => (float[1,3,4,4] image_embeddings) {{
  channels = Transpose <perm=[2,0,1]> (input_image)
  zero = Constant <value_ints=[0]> ()
  image = Unsqueeze (channels, zero)
  image_embeddings = {POOL} (image)
}}"""
SAM2_ENCODER = f"""encoder (float[1,3,64,64] image)
  => (float[1,3,8,8] high_res_feats_0, float[1,3,4,4] high_res_feats_1, float[1,3,4,4] image_embed) {{
  high_res_feats_0 = AveragePool <kernel_shape=[8,8], strides=[8,8]> (image)
  high_res_feats_1 = {POOL} (image)
  two = Constant <value_float=2.0> ()
  image_embed = Mul (high_res_feats_1, two)
}}"""

# Each mask m of prompt p is: mean feature + Σ label·(x + 2y)/100 + m + has_mask_input; its quality is m + Σ labels.
BODY = """
  labels = Cast <to=1> (point_labels)
  last = Constant <value_ints=[-1]> ()
  both = Constant <value_ints=[1,2]> ()
  rows = Constant <value_ints=[1]> ()
  weights = Constant <value_floats=[0.01,0.02]> ()
  column = Unsqueeze (labels, last)
  weighted = Mul (point_coords, weights)
  labeled = Mul (weighted, column)
  sums = ReduceSum <keepdims=1> (labeled, both)
  lifted = Unsqueeze (sums, last)
  count = Constant <value = float[1,COUNT,1,1] {NUMBERS}> ()
  feature = ReduceMean <axes=[1], keepdims=1> (EMBEDDING)
  some = Add (feature, lifted)
  more = Add (some, count)
  MASKS = Add (more, has_mask_input)
  total = ReduceSum <keepdims=1> (labels, rows)
  flat = Constant <value = float[1,COUNT] {NUMBERS}> ()
  iou_predictions = Add (total, flat)
"""


def body(count, embedding, masks):
    numbers = "{" + ", ".join(f"{number}.0" for number in range(count)) + "}"
    filled = BODY.replace("COUNT", str(count)).replace("{NUMBERS}", numbers)
    return filled.replace("EMBEDDING", embedding).replace("MASKS", masks)


SAM_DECODER = (
    """decoder (float[1,3,4,4] image_embeddings, float[1,n,2] point_coords, float[1,n] point_labels,
  float[1,1,16,16] mask_input, float[1] has_mask_input, float[2] orig_im_size)
  => (float[1,4,h,w] masks, float[1,4] iou_predictions, float[1,4,4,4] low_res_masks) {"""
    + body(4, "image_embeddings", "low_res_masks")
    + """
  sum = ReduceSum <keepdims=0> (orig_im_size)
  masks = Add (low_res_masks, sum)
}"""
)
SAM2_DECODER = (
    """decoder (float[1,3,4,4] image_embed, float[1,3,8,8] high_res_feats_0, float[1,3,4,4] high_res_feats_1,
  float[p,n,2] point_coords, int32[p,n] point_labels, float[p,1,16,16] mask_input, float[1] has_mask_input)
  => (float[p,3,4,4] masks, float[p,3] iou_predictions) {
  both_features = Sub (image_embed, high_res_feats_1)"""
    + body(3, "both_features", "masks")
    + """
  size = Shape (high_res_feats_0)
}"""
)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        onnx.save(onnx.parser.parse_model(HEADER + text), tmp_path / name)
        return tmp_path / name

    return write


PROMPTS = Prompts(
    np.random.default_rng(0).uniform(0, 64, (2, 3, 2, 2)).astype(np.float32),
    np.tile([[2, 3], [2, 3], [1, -1]], (2, 1, 1)),
)
IMAGES = np.random.default_rng(1).integers(0, 256, (2, 64, 64, 3), np.uint8)


def expected(masks, *, normalized):
    """Logits (2, 3, 3, 4, 4) and qualities of the masks with these numbers."""
    values = IMAGES.astype(np.float64)
    if normalized:
        values = (values - (123.675, 116.28, 103.53)) / (58.395, 57.12, 57.375)
    features = values.reshape(2, 4, 16, 4, 16, 3).mean((2, 4, 5))
    labels = PROMPTS.labels.astype(np.float64)
    sums = (PROMPTS.points @ np.array([0.01, 0.02]) * labels).sum(-1)
    numbers = np.array(masks, np.float64)
    logits = features[:, None, None] + sums[..., None, None, None] + numbers[:, None, None]
    return logits, labels.sum(-1)[..., None] + numbers


@pytest.mark.parametrize(
    ("encoder", "decoder", "masks", "normalized", "name"),
    [
        (SAM_ENCODER, SAM_DECODER, (1, 2, 3), True, "SAM"),
        (RAW_ENCODER, SAM_DECODER, (1, 2, 3), False, "SAM"),
        (SAM2_ENCODER, SAM2_DECODER, (0, 1, 2), True, "SAM 2"),
    ],
    ids=["sam", "image in 0–255", "sam 2"],
)
def test_masks_for_all_prompts(write, encoder, decoder, masks, normalized, name):
    first, second = write("encoder.onnx", encoder), write("decoder.onnx", decoder)
    segmenter = load_segmenter(f"{second},{first}")
    assert segmenter.name == name
    assert segmenter.side == (64 if normalized else 1024)
    segmenter.side = 64
    found = segmenter.masks(segmenter.embed(IMAGES), PROMPTS)
    logits, quality = expected(masks, normalized=normalized)
    np.testing.assert_allclose(found.logits, logits, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.quality, quality, rtol=1e-6)


def test_a_folder_and_the_name_that_its_files_share(write, tmp_path):
    write("mobile_sam.encoder.onnx", SAM_ENCODER)
    write("mobile_sam.decoder.onnx", SAM_DECODER)
    (tmp_path / "README.txt").write_text("of a project")
    assert load_segmenter(tmp_path).name == "mobile_sam"
    assert [path.name for path in segmenter_files(tmp_path)] == ["mobile_sam.decoder.onnx", "mobile_sam.encoder.onnx"]


def test_pairs_that_cannot_work(write, tmp_path):
    encoder, sam2, decoder = write("e.onnx", SAM_ENCODER), write("e2.onnx", SAM2_ENCODER), write("d.onnx", SAM_DECODER)
    sam2_decoder = write("d2.onnx", SAM2_DECODER)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no graph")
    text = "other (float[1,2] numbers) => (float[1,2] more) { more = Add (numbers, numbers) }"
    other = write("other.onnx", text)
    cases = {
        f"{encoder},{sam2}": "are not an encoder and decoder of SAM",
        f"{decoder},{sam2_decoder}": "are not an encoder and decoder of SAM",
        f"{encoder},{sam2_decoder}": "do not belong together: the decoder needs image_embed, which the encoder lacks",
        f"{sam2},{decoder}": "do not belong together: the decoder needs image_embeddings",
        f"{other},{decoder}": r"the encoder must have one input, an image of 3 channels, got numbers \[1, 2\]",
        f"{broken},{decoder}": "onnxruntime cannot open the segmenter .*broken.onnx",
        f"{encoder},{decoder},{decoder}": "is not a segmenter",
        str(encoder): "is not a segmenter: give MobileSAM's weights as .safetensors, or 'ENCODER.onnx,DECODER.onnx'",
        f"{encoder},{tmp_path / 'gone.onnx'}": "no segmenter at .*gone.onnx",
    }
    for path, message in cases.items():
        with pytest.raises(ColocamError, match=message) as caught:
            load_segmenter(path)
        assert "\n" not in str(caught.value)


SMALL_DECODER = """decoder (float[1,3,4,4] image_embeddings, float[p,2,2] point_coords, float[p,2] point_labels)
  => (float[p,1,h,w] low_res_masks, float[p,1] iou_predictions) {
  shape = Constant <value_ints=[-1,1,1,1]> ()
  flat = Constant <value_ints=[-1,1]> ()
  one = Constant <value_ints=[1]> ()
  means = ReduceMean <axes=[1], keepdims=1> (image_embeddings)
  labels = Cast <to=1> (point_labels)
  sums = ReduceSum (labels, one)
  lifted = Reshape (sums, shape)
  low_res_masks = Add (means, lifted)
  wanted = Cast <to=1> (sums)
  iou_predictions = Reshape (wanted, flat)
}"""


@pytest.mark.parametrize(
    ("encoder", "decoder", "message"),
    [
        ({}, {"float[p,2] point": "double[p,2] point"}, "the input point_labels cannot be"),
        ({"64,64": "100000,100000"}, {}, "the input images cannot be"),
        ({}, {"float[p,2,2]": "float[p,2]"}, "the input point_coords cannot be"),
        ({}, {"flat = Constant <value_ints=[-1,1]> ()": "flat = Shape (point_coords)"}, "onnxruntime cannot run"),
        ({}, {"<axes=[1], keepdims=1>": "<axes=[3], keepdims=1>"}, "the segmenter must return floats"),
        ({}, {"to=1> (sums)": "to=7> (sums)", "float[p,1] iou": "int64[p,1] iou"}, "the segmenter must return floats"),
        ({}, {"Add (means": "Div (means", "(sums, shape)": "(zeros, shape)"}, "values that are not finite"),
    ],
)
def test_graphs_that_compute_something_else(write, encoder, decoder, message, capfd):
    """One line, before a NumPy or compiled function sees the outputs."""
    texts = []
    for text, changes in ((SAM_ENCODER, encoder), (SMALL_DECODER, decoder)):
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)  # noqa: PLW2901
        texts.append(text.replace("  lifted =", "  zeros = Sub (sums, sums)\n  lifted ="))
    pair = f"{write('encoder.onnx', texts[0])},{write('decoder.onnx', texts[1])}"
    with pytest.raises(ColocamError, match=message) as caught:  # noqa: PT012 - some are refused when they are opened
        segmenter = load_segmenter(pair)
        segmenter.masks(segmenter.embed(IMAGES), PROMPTS)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""
