"""Connections of a model as operators of PyTorch, written by `vwn emit torch`.

    Connection(path)      an nn.Module: read(state) -> x, write(state, y) -> state
    Open(), Close()       the first state of an embedding; what a head is given of the last state
    Connections(layers)   a list of layers with a connection around each, opened and closed
    load(module, file)    parameters from a checkpoint of a run of vwn
    save(module, file)    as a .safetensors file that `start_from` of a .vwn file reads
    describe()            the modules with their shapes, as text
"""

from ._op import Close, Connection, Connections, Open, describe, load, paths, save, tensors

__all__ = ["Close", "Connection", "Connections", "Open", "describe", "load", "paths", "save", "tensors"]
