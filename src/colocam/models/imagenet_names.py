"""Read the class also by the names of ImageNet's classes (docs/method/names.md).

The encoder's own classifier knows 1,000 classes: 59 birds, 118 dogs, no cow, but an ox. With q_k the sum of its
probabilities over the classes that a tag k names, and p the head's, tags with a name get among themselves

    log p'_k = ½ log p_k + ½ (t log(q_k + ε) + b_k) + const,

so that their sum stays. t and b are fitted to the tags of training frames. Tags without a name keep p.

Tests: tests/models/test_imagenet_names.py.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES = 1000
EPSILON = 1e-4
"""A class of which ImageNet's classifier sees nothing is unlikely, not impossible."""
NEVER = -1e9

_NAMED = """
ambulance 407; antelope 351-353; ant 310; apple 948; backpack 414; ball 429 430 522 574 722 768 805 852 890;
balloon 417; banana 954; bear 294-297; bed 564; bee 309; beetle 300-307; bicycle 444 671; bird 7-24 80-100 127-146;
boat 472 484 554 576 625 628 724 780 814 871 914; bottle 440 720 737 898 907; bridge 821 839 888; bus 654 779 874;
butterfly 321-326; camel 354; camera 732 759; car 407 436 468 511 609 627 656 661 717 734 751 817; castle 483;
cat 281-285; chair 423 559 765 857; cheetah 293; chicken 7 8; chimpanzee 367; church 497; clock 409 530 892;
cow 345 346; crab 118-121 125; crocodile 49 50; cup 504 968; dog 151-268; dragonfly 319 320; drum 541 822; duck 97 98;
eagle 22; elephant 101 385 386; fire engine 555; fish 0 1 389-397; flamingo 130; flower 985 986; fly 308; fox 277-280;
frog 30-32; goat 350; goose 99; gorilla 366; guitar 402 546; gun 413 763 764; hamster 333; hat 439 515 808;
hippopotamus 344; horse 339; jellyfish 107; kangaroo 104; keyboard 508 878; koala 105; laptop 620 681; leopard 288-290;
lighthouse 437; lion 291; lizard 38-48; llama 355; lobster 122 123; microwave 651; monkey 370-382; motorbike 665 670;
mushroom 947 991-997; orange 950; orangutan 365; ostrich 9; otter 360; owl 24; panda 387 388; parrot 87-90; peacock 84;
pelican 144; penguin 145; phone 487 528 707; piano 579 881; pig 341-343; pizza 963; plane 404 895; rabbit 330-332;
ray 5 6; refrigerator 760; rooster 7; salamander 25-29; scorpion 71; sea lion 150; shark 2-4; sheep 348 349;
ship 403 510 628 724 780; shoe 502 514 630 770 774; sled 450 537; snail 113; snake 52-68; sofa 831; spider 72-77;
squirrel 335; starfish 327; stork 127 128; submarine 833; swan 100; table 532 736; tank 847; taxi 468; teddy bear 850;
television 851; tent 672; tiger 292; tractor 866; train 466 547 565 705 820; tram 829; truck 555 569 675 717 864 867;
turtle 33-37; umbrella 879; van 654 656 675 734; vase 883; violin 889; whale 147 148; wolf 269-271; zebra 340
"""
"""Everyday names, and which of ImageNet's classes (ILSVRC 2012, in the order of their WordNet numbers) they mean."""
_ALSO = {
    "aeroplane": "plane", "airplane": "plane", "aircraft": "plane", "motorcycle": "motorbike", "cattle": "cow",
    "bull": "cow", "couch": "sofa", "tv": "television", "fridge": "refrigerator", "lorry": "truck",
    "hippo": "hippopotamus",
    "fire truck": "fire engine", "hen": "chicken", "puppy": "dog", "kitten": "cat", "streetcar": "tram", "mug": "cup",
    "telephone": "phone", "cab": "taxi", "alligator": "crocodile", "pickup": "truck",
}  # fmt: skip
"""Other words."""


def _table(text: str) -> dict[str, tuple[int, ...]]:
    found = {}
    for entry in text.replace("\n", " ").split(";"):
        words = entry.split()
        numbers = [word for word in words if word[0].isdigit()]
        name = " ".join(words[: len(words) - len(numbers)])
        ends = [[int(end) for end in number.split("-")] for number in numbers]
        found[name] = tuple(one for end in ends for one in range(end[0], end[-1] + 1))
    return found


NAMES = _table(_NAMED)


def named_classes(tags: Sequence[str]) -> list[tuple[int, ...]]:
    """Which of ImageNet's classes each tag means, none where it names none of them.

    What two tags mean belongs to the narrower one: with the tags bird and owl, an owl is no bird.
    """
    meant = [NAMES.get(_singular(tag), ()) for tag in tags]
    narrowest: dict[int, int] = {}
    for classes in meant:
        for one in classes:
            narrowest[one] = min(narrowest.get(one, CLASSES), len(classes))
    return [tuple(one for one in classes if narrowest[one] == len(classes)) for classes in meant]


def _singular(tag: str) -> str:
    """The entry of the table that a tag means, if there is one."""
    words = " ".join(tag.casefold().replace("_", " ").replace("-", " ").split())
    spellings = [_ALSO.get(word, word) for word in (words, words.removesuffix("s"), words.removesuffix("es"))]
    return next((word for word in spellings if word in NAMES), "")


def tells_apart(tags: Sequence[str]) -> bool:
    """Whether at least two tags have a name, so that the names can tell them apart."""
    return sum(map(bool, named_classes(tags))) > 1


class ImagenetNames(nn.Module):
    """The layers after the encoder of weights trained on ImageNet, and which classes the tags mean.

    Args:
        channels: of the encoder's last feature map.
        width: of the features that the 1,000 classes are read from; with another width than ``channels``, a
            convolution of 1×1 and a ReLU6 make them.
        tags: K tags.
    """

    meant: Tensor

    def __init__(self, channels: int, width: int, tags: Sequence[str]) -> None:
        super().__init__()
        self.conv = None if width == channels else nn.Conv2d(channels, width, 1)
        self.classes = nn.Linear(width, CLASSES)
        self.scale = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(len(tags)))
        self.connect(tags)
        self.requires_grad_(requires_grad=False)

    def connect(self, tags: Sequence[str]) -> None:
        """Set which classes the tags mean, (1000, K) of 0 and 1, which is not stored with the weights."""
        meant = [set(classes) for classes in named_classes(tags)]
        rows = [[float(one in classes) for classes in meant] for one in range(CLASSES)]
        self.tags = tuple(tags)
        self.register_buffer("meant", torch.tensor(rows), persistent=False)

    def grown(self, tags: Sequence[str]) -> None:
        """Take further ``tags`` after its own."""
        self.shift = nn.Parameter(F.pad(self.shift, (0, len(tags) - len(self.shift))), requires_grad=False)
        self.connect(tags)

    def named(self) -> Tensor:
        """(K,) whether a tag means any class."""
        return self.meant.amax(0) > 0

    def forget_others(self) -> None:
        """Drop the classes that no tag means; the result stays."""
        used = self.meant.any(1)
        small = nn.Linear(self.classes.in_features, int(used.sum())).requires_grad_(requires_grad=False)
        small.weight.copy_(self.classes.weight[used])
        small.bias.copy_(self.classes.bias[used])
        self.classes, self.meant = small, self.meant[used]

    def evidence(self, last: Tensor, weights: Tensor) -> Tensor:
        """log(q + ε), (B, K), of the last feature map (B, C, h, w), pooled by weights (B, 1, h, w) of sum 1."""
        features = last if self.conv is None else F.relu6(self.conv(last))
        scores = self.classes((features * weights).sum((2, 3))).float()
        meant = self.meant.float()
        scores = scores.masked_fill(meant.amax(1) == 0, NEVER)
        return torch.log(torch.softmax(scores, 1) @ meant + EPSILON)

    def forward(self, logits: Tensor, last: Tensor, weights: Tensor) -> Tensor:
        """Logits (B, K) of p' from those of p, and the arguments of :meth:`evidence`."""
        nameless = ~self.named()
        own = F.log_softmax(logits.float(), 1)
        told = self.scale * self.evidence(last, weights) + self.shift
        mixed = F.log_softmax(((own + told) / 2).masked_fill(nameless, NEVER), 1)
        mass = torch.logsumexp(own.masked_fill(nameless, NEVER), 1, keepdim=True)
        return torch.where(nameless, own, mixed + mass)
