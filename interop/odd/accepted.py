"""Oddities that may be worse through Shoal than directly, and why."""

ACCEPTED: dict[str, str] = {
    "dies-of-elicitation": "a server that ends may have any reason to: Shoal starts it again as it is",
}
