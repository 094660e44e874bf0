"""What sentences.py takes for a sentence, and that a seed draws the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sentences  # noqa: E402

C = '''
/*
 * A file opens with what it is for.  Its second sentence
 * goes over two lines, and is one.
 *
 *     drawn ---> not prose at all, however many words
 */

#include "some/header/with/many/words.h"

int  n;     /* too short */
const char *text = "the first half of a message, "
                   "and \\"the second\\" one";
const char *json = "{s:s, s:s, s:s, s:s, s:s, s:s}";
'''

MD = '''# A heading of more than five words

The paragraph has a sentence with `code(a, b, c)` in
two lines. And [a link](to/some/where) follows in another one.

```
no sentence in code, however many words
```

| column | what it holds |
|---|---|
| `x` | a cell of a table with several words |
'''


def said(found):
    return [text for _, text in found if sentences.is_sentence(text)]


def test_comments_are_cut_into_sentences():
    assert said(sentences.comments_of_c(C)) == [
        "A file opens with what it is for.",
        "Its second sentence goes over two lines, and is one."]


def test_messages_are_whole_and_no_code():
    assert said(sentences.messages_of_c(C)) == [
        'the first half of a message, and \\"the second\\" one']


def test_docs_have_paragraphs_and_cells():
    assert said(sentences.docs(MD)) == [
        "The paragraph has a sentence with `code(a, b, c)` in two lines.",
        "And [a link] follows in another one.",
        "a cell of a table with several words"]


def test_a_seed_draws_the_same_of_each_kind():
    found = {"comment": [("a.c", i, f"comment {i}") for i in range(50)],
             "doc": [("a.md", i, f"doc {i}") for i in range(50)]}
    first = list(sentences.draw(found, 11, 7))
    assert first == list(sentences.draw(found, 11, 7))
    assert first != list(sentences.draw(found, 11, 8))
    assert [kind for kind, *_ in first].count("comment") == 6
    assert len(set(first)) == 11
