"""A worker does not run with incomplete TLS settings."""

from __future__ import annotations

import asyncio
import os
import unittest
from unittest import mock

from shoal_worker import Tls, Worker

FILES = {"SHOAL_TLS_CERTIFICATE": "a.crt", "SHOAL_TLS_KEY": "a.key", "SHOAL_TLS_AUTHORITY": "ca.crt"}


class TlsTest(unittest.TestCase):
    def test_an_incomplete_environment_is_refused(self) -> None:
        for left in FILES:
            others = {name: file for name, file in FILES.items() if name != left}
            with mock.patch.dict(os.environ, others, clear=True), self.assertRaisesRegex(ValueError, left):
                Tls.from_environment()
        with mock.patch.dict(os.environ, {}, clear=True):
            self.assertIsNone(Tls.from_environment())
        with mock.patch.dict(os.environ, FILES, clear=True):
            self.assertEqual(Tls.from_environment(), Tls("a.crt", "a.key", "ca.crt"))

    def test_files_that_cannot_be_used_end_the_start(self) -> None:
        worker = Worker("p")
        with self.assertRaises(OSError):
            asyncio.run(worker.serve("127.0.0.1:1", tls=Tls("/none.crt", "/none.key", "/none.pem")))


if __name__ == "__main__":
    unittest.main()
