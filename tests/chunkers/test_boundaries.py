"""Where each level of the ladder lets a cut fall. In the tables `‖` marks every boundary."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import boundaries

LEVELS = {
    "blank line": boundaries.blank_lines,
    "paragraph": boundaries.paragraphs,
    "paragraph or sentence": lambda text: boundaries.AnyOf(
        [boundaries.paragraphs(text), boundaries.sentences(text)]
    ),
    "line": boundaries.lines,
    "sentence": boundaries.sentences,
    "clause": boundaries.clauses,
    "word": boundaries.words,
    "cell": boundaries.cells,
    "one separator": lambda text: boundaries.separators(text, ["; "]),
    "separators": lambda text: boundaries.separators(text, [";", ";;", "; "]),
}


def all_boundaries(level, text):
    found, at = [], 0
    while (boundary := level.first(at, len(text))) is not None:
        assert at < boundary < len(text)
        found.append(boundary)
        at = boundary
    return found


def marked(level_name, text):
    """The text with `‖` at every boundary that `first` finds; `last` must find the same last one."""
    level = LEVELS[level_name](text)
    found = all_boundaries(level, text)
    assert level.last(0, len(text)) in {len(text), found[-1] if found else None}
    for boundary in reversed(found):
        text = text[:boundary] + "‖" + text[boundary:]
    return text


def check(level_name, expected):
    assert marked(level_name, expected.replace("‖", "")) == expected


# ---------------------------------------------------------------------------------------------------- sentences

SENTENCES = {
    "stops before white space": "One. ‖Two! ‖Three? ‖Four… ‖Five.\n‖Six.\t‖Seven",
    "no stop before a letter": "no.stop here?yes a!b c…d",
    "titles": "Dr. No met Mr. and Mrs. Smith, Prof. Li vs. St. John. ‖They left.",
    "abbreviations": "Cats, e.g. lions, i.e. big ones, etc. and (cf. Fig. 3 in vol. 2) at 5 p.m. today. ‖Yes.",
    "abbreviations of other languages": "Das gilt z.B. bzw. d.h. hier. ‖Ja.",
    "an abbreviation after a bracket": "The firm (Inc. or Ltd. alike) won. ‖Good.",
    "no, the word and the number": "Is No. 5 here? ‖She said no. ‖He left.",
    "initials": "J. R. R. Tolkien met C. S. Lewis. ‖Yes.",
    "an initial with an accent": "É. Zola schrieb. ‖Ja.",
    "a small letter is none": "See part a. ‖Then b.",
    "decimals": "Pi is 3.14 and 1.000,50 is money. ‖Good.",
    "a number at the end": "There were 12. ‖Then 2026. ‖Then none.",
    "versions": "Use v1.2 or 1.2.3-rc.1 now. ‖Good.",
    "file names and addresses": "Open a.txt at https://example.org/a.b?c=d. ‖Mail me@example.org! ‖Go.",
    "several dots": "Wait... ‖What? ‖So...so. ‖End",
    "several stops": "What?! ‖No!!! ‖Really?.. ‖Yes.",
    "closing quotes": 'He said "Go." ‖She said “No!” ‖They said «Bien.» ‖End.',
    "closing brackets": "(It was so.) ‖[Not here.] ‖Then {this!} ‖End.",
    "a quote and a bracket": '(He said "Go.") ‖End.',
    "a stop inside brackets": "It was (so, Fig. 2) then. ‖End",
    "Chinese": "今天是晴天。‖明天下雨？‖船出发！‖他走了；‖我留下。‖好",
    "Japanese": "今日は晴れ。‖「はい。」‖と言った。‖『本。』‖次",
    "half-width Japanese": "ﾊﾚ｡‖ｱﾒ",
    "a wide space after a wide stop": "今日は晴れ。‖　明日は雨。‖ 次",
    "a Chinese ellipsis": "他走了……‖然后回来了…‖好",
    "several wide stops": "什么？！‖好。",
    "a mixture of scripts": "今天 v1.2 发布。‖It is 3.14. ‖好。",
    "Arabic": "هل وصلت السفينة؟‖ نعم وصلت. ‖شكرا",
    "Urdu": "جہاز آیا۔‖ سب خوش ہیں۔‖ہاں",
    "Devanagari": "जहाज आया।‖ सब खुश हैं॥‖ हाँ",
    "Ethiopic": "ሰላም።‖ ደህና",
    "Russian initials": "А. С. Пушкин писал. ‖Да.",
    "list numbers": "1. First item.\n‖2. Second.\n‖10. Tenth",
    "list numbers, indented": "Items:\n   1. First.\n‖\t2. Second",
    "list numbers after CR": "Items:\r1. First.\r‖2. Second",
    "URLs": "See https://example.org/a.b/c?d=e!f&g#h.i. ‖Then www.example.org. ‖Or ftp://x.org/?q. ‖End.",
    "a URL in brackets": "It is there (https://example.org/a?b=c). ‖See <https://example.org/x.html>. ‖End.",
    "URLs beside Japanese": "詳細は https://example.org/a.b?c をご覧ください。‖https://example.org。‖次",
    "an ellipsis and a small letter": "Wait … ‖what? ‖So… ‖yes.",
    "an ellipsis of dots after a stop": "He left.... ‖She stayed... ‖So it went.",
    "an ellipsis in brackets": "One […] two. ‖Three (...) four. ‖Five.",
    "an ellipsis before a quote": '"Well..." ‖He left. ‖“Well…” ‖Gone.',
    "stops and closers by turns": 'He asked "Why?". ‖She said (no!). ‖So “yes.”) ‖End.',
    "German and French quotes": "„Ja.“ ‖Er ging. ‖»Nein!« ‖« Oui. » ‖Fin.",
    "single quotes": "'Go.' ‖‘Stay.’ ‖It is the boys'. ‖End.",
    "a stop after a bracket": "It was so (or not). ‖See [1]. ‖Then {x}. ‖End.",
    "a reference after a stop": "It is so.[1] ‖Another.[2][3] ‖End.",
    "dashes and stops": "Really?—yes. ‖Well.—No. ‖End",
    "Chinese quotes and brackets": "他说：“走吧！”‖她说：（不。）‖《书。》‖【注。】‖好",
    "Chinese with spaces": "今天 是 晴天。‖ 明天 下雨？‖ 好。",
    "Chinese with an ASCII stop": "版本 1.2 发布. ‖好",
    "Korean": "오늘은 맑다. ‖내일은 비? ‖좋다! ‖끝",
    "Thai has no stops": "เรือข้ามฟากออกทุกสิบนาที ตั๋วซื้อบนเรือ",
    "Thai with stops": "เรือออกแล้ว. ‖ตั๋ว 3.50 บาท! ‖จบ",
    "Khmer and Burmese": "ទូកឆ្លង។‖ ចប់៕‖ သွားပြီ။‖ ပြီးပြီ",
    "Arabic with a semicolon and quotes": "قال: «نعم؟»‖ ثم ذهب. ‖«لا!» ‖انتهى",
    "Persian with numbers": "قیمت ۳.۱۴ است. ‖تمام؟‖ بله",
    "Hebrew": 'הוא הלך. ‖"כן." ‖סוף',
    "Devanagari with quotes and numbers": "“जहाज आया।”‖ मूल्य ३.१४ है।‖ क्या? ‖हाँ",
    "Greek, whose question mark is a semicolon": "Τι είναι; Δεν ξέρω. ‖Τέλος",
    "Armenian": "Նա եկավ։‖ Վերջ",
    "Mongolian and Tibetan": "ᠪᠠᠢᠨᠠ᠃‖ བཀྲ་ཤིས།‖ བདེ་ལེགས",
    "scripts in one line": "Yes. ‖はい。‖نعم؟‖ हाँ।‖ Да! ‖好。‖End",
    "items of a list in one line": "(1) One. ‖(2) Two. ‖(a) Three. ‖End",
    "no stop at all": "no stop at all",
    "a stop at the end of the text": "One. ‖Two.",
    "only stops": "...",
}


@pytest.mark.parametrize("case", SENTENCES)
def test_sentences(case):
    check("sentence", SENTENCES[case])


def test_sentences_of_three_scripts_end_with_their_own_marks():
    text = "今日は晴れ。明日は雨？船は出る！هل وصلت السفينة؟ نعم وصلت۔ जहाज आया। सब खुश हैं।"
    pieces = marked("sentence", text).split("‖")
    assert "".join(pieces) == text
    assert [piece.strip() for piece in pieces] == [
        *("今日は晴れ。", "明日は雨？", "船は出る！"),
        *("هل وصلت السفينة؟", "نعم وصلت۔", "जहाज आया।", "सब खुश हैं।"),
    ]
    assert not any(piece.strip()[0] in "。？！؟۔।" for piece in pieces)


# -------------------------------------------------------------------------------------------------- other levels

OTHERS = [
    ("clause", "one, ‖two; ‖three: ‖four"),
    ("clause", "1,000 at 10:30, ‖or a:b;c"),
    ("clause", "一，‖二、‖三；‖四：‖五"),
    ("clause", "نعم،‖ ثم؛‖ لا"),
    ("clause", "one,\n‖two"),
    ("word", "one ‖two\t‖three\n‖four\u00a0‖five\u3000‖six\u2028‖seven"),
    ("word", "two ‖ ‖spaces"),
    ("word", "渡し船は十分おきに出ます"),
    ("line", "one\n‖two\r\n‖three\r‖four\n‖\n‖five"),
    ("line", "no line\u2028separator\x0band\x85others"),
    ("blank line", "one\n\n‖two\nthree\n\n‖four"),
    ("blank line", "one\n \t\n‖two\n\u3000\n‖three"),
    ("blank line", "one\r\n\r\n‖two\r\nthree\r\n  \r\n‖four"),
    ("blank line", "one\r\r‖two\rthree\r \r‖four"),
    ("blank line", "one\r\ntwo\r\nthree"),
    ("blank line", "one\n\r\n‖two\r\n\n‖three"),
    ("blank line", "one\ntwo\nthree"),
    ("paragraph", "one\n\n‖two\nthree\n\n‖four"),
    ("paragraph", "one\n \t\n‖two\r\n\r\n‖three\r\r‖four\r\nfive"),
    ("paragraph", "Buy:\n‖- milk\n‖  * bread and\n    butter\n‖+ tea\n‖• salt\n‖\t– oil"),
    (
        "paragraph",
        "To do:\n‖1. Go.\n‖2) Come.\n‖(3) Stay.\n‖10. End.\n2026. No item\n-5 degrees\n--- \n*bold*",
    ),
    ("paragraph", "Buy:\r\n‖- milk\r‖- bread\r\n\r\n‖- tea"),
    ("paragraph or sentence", "One. ‖Two\nis wrapped. ‖Three\n\n‖Four\n‖- five\n‖- six. ‖Seven"),
    ("paragraph or sentence", "今日は\n晴れ。‖明日は\n\n‖雨"),
    ("blank line", "渡し\n\n‖船は\n\n‖出ます"),
    ("cell", "| a |‖ b |‖ c |\n| 1 |‖ 2 |‖ 3 |"),
    ("cell", "| a \\| b |‖ c |"),
    ("cell", "a |‖ b |‖ c"),
    ("cell", "| a |‖ b |\r\n| c |‖ d |\r\n"),
    ("one separator", "a; ‖b;c; ‖d"),
    ("separators", "a;‖b;;‖c; ‖d"),
]


@pytest.mark.parametrize(("level", "expected"), OTHERS)
def test_boundaries(level, expected):
    check(level, expected)


@pytest.mark.parametrize("spaces", ["", " ", "\t \u00a0"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_number_of_blank_lines_parts_two_paragraphs(newline, spaces):
    for blank_lines in (1, 2, 5):
        text = "one" + newline + (spaces + newline) * blank_lines + "two" + newline + "three"
        found = all_boundaries(boundaries.blank_lines(text), text)
        assert found
        assert not text[3 : found[-1]].strip()
        assert text[found[-1] :].strip() == "two" + newline + "three"


# ------------------------------------------------------------------------------------- what holds for every level

PIECES = (
    *("a", "Dr.", "word", "3.14", "1,000", "J.", "2.", "日本", "。", "？", "…", "؟", "।"),
    *(". ", "! ", '."', ".) ", ", ", "; ", ";;", ": ", "，", "、", " ", "  ", "\u3000"),
    *("\n", "\n\n", "\r\n", "\r", "\n \n", "|", "\\|", "| ", "!", ".", "...", "\n- ", "\n1. "),
    *("[1]", "“", " » ", "(...)", "[…]"),
)
TEXTS = soup(PIECES)
# A mark with the stops, closers and white space after it.
LONGEST_MARK = 40


@pytest.mark.parametrize("name", LEVELS)
def test_first_and_last_tell_of_the_same_boundaries(name):
    @given(TEXTS, st.data())
    def same(text, data):
        level = LEVELS[name](text)
        found = all_boundaries(level, text)
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        first = level.first(start, end)
        after = bisect_right(found, start)
        assert first == (found[after] if after < len(found) and found[after] < end else None)
        last = level.last(start, end)
        assert last is None or last in {*found, len(text)}
        assert last is None or start < last <= end + LONGEST_MARK
        inside = [boundary for boundary in found if start + LONGEST_MARK < boundary <= end]
        assert not inside or last >= inside[-1]

    same()


def test_what_is_kept_whole_has_boundaries_only_around_it():
    text = "one two [a b c] three"
    start, end = text.index("["), text.index("]") + 1
    level = boundaries.KeepingWhole(boundaries.words(text), [start], [end])
    assert all_boundaries(level, text) == [4, start, end + 1]
    assert level.last(0, end - 1) == start
    assert level.last(start, end - 1) is None
    assert level.first(start, len(text)) == end + 1


def test_a_boundary_before_what_is_kept_whole_is_its_start():
    text = "word[a b]"
    level = boundaries.KeepingWhole(boundaries.words(text), [4], [9])
    assert level.first(0, len(text)) == 4
    assert level.last(0, len(text) - 1) == 4
