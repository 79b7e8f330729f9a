"""The names, nouns and word lists that exercises draw from."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _words(
    "Ada Ben Carla David Emma Felix Grace Hugo Ines Jack Kira Leo Maya Noah Olga Paul Rosa Sam "
    "Tara Victor Wendy Yusuf Zoe"
)
THINGS = _words("apple book marble pencil sticker button shell coin card ball plum stamp")
GOODS = _words("book pencil ball card toy cake ticket plant poster")
COLORS = ("red", "blue", "green", "yellow", "white", "black")
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHORT_WORDS = _words(
    "cat sun map bird tree milk lamp house bread chair table river garden window pencil rabbit "
    "basket picture kitchen blanket mountain elephant sandwich umbrella"
)
REPEATING_WORDS = _words(
    "BANANA PEPPER COFFEE LETTER TATTOO BALLOON SUCCESS PAPAYA COCOA LEVEL KAYAK RADAR APPLE HAPPY "
    "EERIE GOOSE TOMATO POTATO INDIGO CANAL PUPPET BUBBLE MIRROR RABBIT PUZZLE GIGGLE SEVENTEEN "
    "ALPACA SUMMIT CASCADE ARRANGE PARALLEL ELEMENT INFINITY ADDRESS MAMMAL"
)
LISTS = {
    "animal": ("cat", "dog", "cow", "pig", "hen", "fox", "bear", "frog"),
    "color": ("red", "blue", "green", "pink", "white", "brown", "black", "gray"),
    "fruit": ("apple", "pear", "plum", "fig", "peach", "lemon", "grape", "kiwi"),
    "name": ("Tom", "Ann", "Sam", "Eva", "Max", "Lily", "Kim", "Rob"),
}
