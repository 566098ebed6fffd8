"""A network for the services of a Compose file: each has a network namespace, an address, and a name that a small DNS server resolves.
Everything ends with the process that made it.

Run it in its own network and mount namespace: `unshare --net --mount`.
"""

import socket
import struct
import subprocess
import threading
from pathlib import Path

NETWORK = "10.213.0"
GATEWAY = f"{NETWORK}.1"
# Seconds that answers may be cached, so that changes are seen soon.
TTL = 1


def run(*command):
    subprocess.run(command, check=True)


class Network:
    """The bridge of all services, and their names."""

    def __init__(self, directory):
        self.names = {}
        self.holders = []
        run("ip", "link", "set", "lo", "up")
        # Without its own address, a bridge takes the lowest one of its ports. A new service would change it, and others would send their
        # DNS queries to the old one.
        run("ip", "link", "add", "services", "address", "02:00:00:00:00:01", "type", "bridge")
        run("ip", "address", "add", f"{GATEWAY}/24", "dev", "services")
        run("ip", "link", "set", "services", "up")
        for name, text in (("resolv.conf", f"nameserver {GATEWAY}\n"), ("hosts", "127.0.0.1 localhost\n"),
                           ("nsswitch.conf", "hosts: files dns\n")):
            file = Path(directory, name)
            file.write_text(text)
            # Visible in this mount namespace only.
            if Path("/etc", name).exists():
                run("mount", "--bind", str(file), f"/etc/{name}")
        self.questions = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.questions.bind((GATEWAY, 53))
        threading.Thread(target=self.answer_questions, daemon=True).start()

    def join(self, name):
        """A namespace with an address for one more process of the service `name`. Returns the words that enter it, and the address.
        """
        number = len(self.holders) + 2
        # The namespace lives as long as this process.
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        self.holders.append(holder)
        holder.stdout.readline()
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        address = f"{NETWORK}.{number}"
        run("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        run("ip", "link", "set", f"veth{number}", "master", "services", "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "address", "add", f"{address}/24", "dev", "eth0")
        run(*inside, "ip", "link", "set", "eth0", "up")
        self.names.setdefault(name, []).append(address)
        return inside, address

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()

    def answer_questions(self):
        while True:
            question, asker = self.questions.recvfrom(512)
            self.questions.sendto(self.answer(question), asker)

    def answer(self, question):
        """All addresses of the name (type A), an empty answer for other types, and NXDOMAIN for unknown names."""
        labels, at = [], 12
        while length := question[at]:
            labels.append(question[at + 1:at + 1 + length].decode())
            at += 1 + length
        kind = struct.unpack_from("!H", question, at + 1)[0]
        addresses = self.names.get(".".join(labels))
        records = [socket.inet_aton(address) for address in addresses or [] if kind == 1]
        header = question[:2] + struct.pack("!HHHHH", 0x8180 | (0 if addresses else 3), 1, len(records), 0, 0)
        body = question[12:at + 5]
        for record in records:
            body += struct.pack("!HHHIH", 0xC00C, 1, 1, TTL, len(record)) + record
        return header + body
