"""JSON of any depth: the end of a value is found without a stack, and as Python's decoder finds it.

On Lambda's Python the decoder that proves a source goes deeper than Python's own, by which others
see its records.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.second_reading import json_values
from compactor.second_reading.deep_json import end_of_value

# Deeper than the decoder of any Python goes.
DEEP = 100_000
ARRAYS = "[" * DEEP + "]" * DEEP
OBJECTS = '{"a":[' * DEEP + "1" + "]}" * DEEP

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(ANY_JSON, st.sampled_from([None, 1]), st.sampled_from(["", ",", " ]", "}", '"', "\n{"]))
@settings(max_examples=300)
def test_a_value_ends_where_python_s_decoder_sees_its_end(
    value: Any, indent: int | None, rest: str
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=len(rest) % 2 == 0)
    assert end_of_value(text + rest, 0) == len(text)


@given(st.text('{}[]",:1-e.0tnulr \\u', max_size=12), st.integers(0, 2))
@settings(max_examples=1_500)
def test_whatever_python_s_decoder_takes_or_refuses_is_taken_or_refused(text: str, at: int) -> None:
    text = text.lstrip()
    at = 0 if text[at : at + 1].isspace() else min(at, len(text))
    try:
        end = json.JSONDecoder().raw_decode(text, at)[1]
    except ValueError:
        with pytest.raises(ValueError, match="at character"):
            end_of_value(text, at)
    else:
        assert end_of_value(text, at) == end


@pytest.mark.parametrize("text", [ARRAYS, OBJECTS])
def test_a_value_of_a_hundred_thousand_levels_is_one_value(text: str) -> None:
    assert end_of_value(text, 0) == len(text)
    assert json_values.is_value(text.encode())
    assert list(json_values.values([text.encode(), b"{}"])) == [text.encode(), b"{}"]
    records = b'{"Records":[%b,{}]}' % text.encode()
    assert list(json_values.elements([records], records=True)) == [text.encode(), b"{}"]
    assert json_values.is_records_alone(records)


@pytest.mark.parametrize("text", [ARRAYS[:-1], ARRAYS + "]", OBJECTS[:-1] + "]", ARRAYS + "1"])
def test_what_is_not_closed_as_it_was_opened_is_no_value(text: str) -> None:
    assert not json_values.is_value(text.encode())
