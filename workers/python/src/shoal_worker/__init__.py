"""Tools in Python for Shoal: a process that joins Shoal's nodes and runs calls for them.

    worker = Worker("search")

    @worker.tool(read_only=True)
    async def lookup(query: str, limit: int = 10) -> list[str]:
        \"\"\"Finds documents.\"\"\"
        ...

    worker.run("127.0.0.1:7001")
"""

from .context import Context, SessionState
from .errors import RpcError, ToolError
from .settings import Limits, Tls
from .worker import Worker

__all__ = ["Context", "Limits", "RpcError", "SessionState", "Tls", "ToolError", "Worker"]
