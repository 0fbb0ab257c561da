import torch
from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoderBlock

from colocam.models.decoder import UNet


def test_mixed_precision_gives_the_maps_and_gradients_of_the_plain_decoder():
    torch.manual_seed(0)
    decoder = UNet([4, 8, 8], (8, 8, 4))
    frames = torch.zeros(2, 3, 16, 16)
    features = [torch.randn(2, width, side, side).bfloat16() for width, side in ((4, 8), (8, 4), (8, 2))]
    results = []
    for plain in (False, True):
        for block in decoder.unet.blocks:
            assert type(block) is not UnetDecoderBlock
            block.__class__ = UnetDecoderBlock if plain else type(block)
        with torch.autocast("cpu", torch.bfloat16):
            maps = decoder(frames, features)
        results.append([maps, *torch.autograd.grad(maps.float().square().sum(), decoder.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
