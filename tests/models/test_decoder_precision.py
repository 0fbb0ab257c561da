import torch
from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder

from colocam.models.decoder import UNet


def test_mixed_precision_gives_the_maps_and_gradients_of_the_plain_decoder():
    torch.manual_seed(0)
    decoder = UNet([4, 8, 8], (8, 8, 4))
    plain = UnetDecoder([3, 4, 8, 8], [8, 8, 4], 3).to(memory_format=torch.channels_last)
    plain.load_state_dict(decoder.unet.state_dict())
    frames = torch.zeros(2, 3, 16, 16)
    features = [torch.randn(2, width, side, side).bfloat16() for width, side in ((4, 8), (8, 4), (8, 2))]
    results = []
    for unet in (decoder.unet, plain):
        with torch.autocast("cpu", torch.bfloat16):
            maps = unet([frames, *features])
        results.append([maps, *torch.autograd.grad(maps.float().square().sum(), unet.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
