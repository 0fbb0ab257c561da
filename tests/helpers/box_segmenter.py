"""A segmenter that fills the box of each prompt."""

import pytest

BOX_ENCODER = """<ir_version: 9, opset_import: ["" : 17]>
encoder (float[1,3,64,64] image) => (float[1,3,4,4] image_embeddings) {
  image_embeddings = AveragePool <kernel_shape=[16,16], strides=[16,16]> (image)
}"""
BOX_DECODER = """<ir_version: 9, opset_import: ["" : 17]>
decoder (float[1,3,4,4] image_embeddings, float[p,2,2] point_coords, float[p,2] point_labels)
  => (float[p,3,32,32] low_res_masks, float[p,3] iou_predictions) {
  first = Constant <value_float=1.0> ()
  end = Constant <value_float=65.0> ()
  step = Constant <value_float=2.0> ()
  places = Range (first, end, step)
  row = Constant <value_ints=[1,1,1,32]> ()
  column = Constant <value_ints=[1,1,32,1]> ()
  x = Reshape (places, row)
  y = Reshape (places, column)
  flat = Constant <value_ints=[-1,4]> ()
  corners = Reshape (point_coords, flat)
  a, b, c, d = Split <axis=1> (corners)
  lifted = Constant <value_ints=[-1,1,1,1]> ()
  x1 = Reshape (a, lifted)
  y1 = Reshape (b, lifted)
  x2 = Reshape (c, lifted)
  y2 = Reshape (d, lifted)
  left = Sub (x, x1)
  right = Sub (x2, x)
  top = Sub (y, y1)
  bottom = Sub (y2, y)
  whole = Min (left, right, top, bottom)
  eight = Constant <value_float=8.0> ()
  many = Constant <value_float=1000.0> ()
  inner = Sub (whole, eight)
  nothing = Sub (whole, many)
  low_res_masks = Concat <axis=1> (whole, inner, nothing)
  means = ReduceMean <axes=[2,3], keepdims=0> (low_res_masks)
  iou_predictions = Sigmoid (means)
}"""


@pytest.fixture(scope="session")
def box_segmenter_files(tmp_path_factory) -> str:
    """Folder of a segmenter in two ONNX files that fills the box of each prompt; a point gives no mask.

    Of its three masks the second is 8 of 64 pixels narrower on each side, and the third is empty.
    """
    import onnx.parser  # noqa: PLC0415 - slow to import

    folder = tmp_path_factory.mktemp("segmenter")
    for name, text in (("boxes.encoder", BOX_ENCODER), ("boxes.decoder", BOX_DECODER)):
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
    return str(folder)
