"""Connections of a model as operators of PyTorch, written by `vwn emit torch`.

    Connection(path)      an nn.Module: read(state) -> x, write(state, y) -> state
    Open(), Close()       the first state of an embedding; what a head is given of the last state
    Connections(layers)   a list of layers with a connection around each, opened and closed
    describe()            the modules with their shapes, as text
"""

from ._op import Close, Connection, Connections, Open, describe, paths

__all__ = ["Close", "Connection", "Connections", "Open", "describe", "paths"]
