"""A TCP relay that can go silent on open connections, like a firewall or NAT
that has lost a flow: neither end is told, and the bytes are dropped.  It can
also go slow: one byte a second."""

import contextlib
import itertools
import socket
import struct
import threading
import time


class Relay:
    def __init__(self, ports, target):
        self.port = ports.take()
        self.target = f"127.0.0.1:{self.port}"
        self.connections = 0            # accepted since the start
        self.hellos = []                # what the client of each says first
        self._behind = target.rsplit(":", 1)
        self._pairs = []
        self._silent, self._slow = set(), set()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self):
        """Forwards nothing more on open connections, but serves new ones."""
        self._silent.update(self._pairs)

    def slow(self):
        """From now on open connections get one byte a second from behind."""
        self._slow.update(pair[::-1] for pair in self._pairs)

    def reset(self):
        """Ends open connections of clients by RST."""
        for client, _ in self._pairs:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              struct.pack("ii", 1, 0))
            client.shutdown(socket.SHUT_RD)     # a thread waits in it
            client.close()

    def close(self):
        """A thread that waits in a socket keeps it open: shutdown() ends the
        wait."""
        for sock in (self._listener, *itertools.chain(*self._pairs)):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                server = socket.create_connection(self._behind)
            except OSError:
                client.close()          # as if nobody listened here
                continue
            pair = (client, server)
            self._pairs.append(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pump, daemon=True,
                                 args=(pair, source, sink)).start()

    def _pump(self, pair, source, sink):
        try:
            if source is pair[0]:
                self.hellos.append(source.recv(65536, socket.MSG_PEEK))
            while data := source.recv(65536):
                if (source, sink) in self._slow:
                    for byte in data:
                        sink.sendall(bytes([byte]))
                        time.sleep(1)
                elif pair not in self._silent:
                    sink.sendall(data)
            if pair not in self._silent:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
