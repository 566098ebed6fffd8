"""Type hints as JSON Schema, and back."""

from __future__ import annotations

import enum
import unittest
from dataclasses import dataclass
from typing import Annotated, Literal, Optional, TypedDict

from shoal_worker.schema import decode, encode, schema_of


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Order:
    item: str
    size: Size = Size.SMALL


class Place(TypedDict):
    city: str


class SchemaTest(unittest.TestCase):
    def test_hints_make_schemas(self) -> None:
        for hint, schema in [
            (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
            (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}),
            (list[str], {"type": "array", "items": {"type": "string"}}),
            (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
            (Literal["a", "b"], {"enum": ["a", "b"]}),
            (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            (Place, {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
            (
                Order,
                {
                    "type": "object",
                    "properties": {"item": {"type": "string"}, "size": {"enum": ["s", "l"]}},
                    "required": ["item"],
                },
            ),
        ]:
            self.assertEqual(schema_of(hint), schema, hint)
        with self.assertRaises(TypeError):
            schema_of(object)

    def test_values_are_made_and_unmade(self) -> None:
        order = decode(list[Order], [{"item": "tea", "size": "l"}])
        self.assertEqual(order, [Order("tea", Size.LARGE)])
        self.assertEqual(encode(order), [{"item": "tea", "size": "l"}])
        self.assertIsNone(decode(Optional[Order], None))


if __name__ == "__main__":
    unittest.main()
