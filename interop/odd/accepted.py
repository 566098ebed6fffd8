"""Oddities that may be worse through Shoal than directly, and why."""

ACCEPTED: dict[str, str] = {
    "dies-of-elicitation": "a server that ends may have any reason to: Shoal starts it again as it is",
    "id-zero": "it answers every request with the id 0, so no client gets further than initialize",
    "tools-error": "Shoal finds the server of a call by the list of tools, which this server refuses",
    "slow-start": "Shoal refuses calls as safe to repeat while a server takes longer than 5 s to start",
    "resources-silent": "Shoal waits 10 s for a list at a server's start, and refuses calls as safe to repeat until then",
}
