"""A tool that asks its user before it answers. It works for clients of both eras."""

from __future__ import annotations

from shoal_worker import Context, Worker

worker = Worker("python-booking", version="1.0.0")

FORM = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many are coming."},
        "date": {"type": "string", "description": "On which day."},
    },
    "required": ["guests", "date"],
}


@worker.tool(destructive=False)
async def book(restaurant: str, ctx: Context) -> str:
    """Books a table, after the user has filled in a form."""
    answer = await ctx.elicit(f"When would you like to eat at {restaurant}, and with how many?", FORM)
    if answer["action"] != "accept":
        return f"not booked: {answer['action']}"
    content = answer["content"]
    return f"booked {restaurant} for {content['guests']} on {content['date']}"


if __name__ == "__main__":
    worker.run()
