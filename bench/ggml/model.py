"""A llama of random weights as GGUF, in q4_0 with norms in f32: what llama-bench needs of a model.

    python3 bench/ggml/model.py model.gguf --layers 32 --width 4096 --heads 32 --kv-heads 8 -d 128 --inner 14336
    llama-bench -m model.gguf -fa 1 -p 512 -n 64 -d 0,8192

llama-perplexity needs a vocabulary, too: --tokenizer FILE takes it from another GGUF, such as models/ggml-vocab-llama-spm.gguf of llama.cpp.
"""
import argparse
import os
import struct

F32, Q4_0, BLOCKS = 0, 2, 1 << 16


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def pair(key, value):
    """A pair of the head: a text, an integer or a float."""
    kind, data = (8, text(value)) if isinstance(value, str) else (4, struct.pack("<I", value)) if isinstance(value, int) else \
        (6, struct.pack("<f", value))
    return text(key) + struct.pack("<I", kind) + data


def size(ne, kind):
    n = 1
    for x in ne:
        n *= x
    return n * 4 if kind == F32 else n // 32 * 18


SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by the number of its type
TEXT, ARRAY = 8, 9


def past_value(raw, at, kind):
    """Where the value at `at` ends, and how many elements it has."""
    if kind == TEXT:
        return at + 8 + struct.unpack_from("<Q", raw, at)[0], 1
    if kind != ARRAY:
        return at + SIZES[kind], 1
    element, n = struct.unpack_from("<IQ", raw, at)
    at += 12
    if element != TEXT:
        return at + n * SIZES[element], n
    for _ in range(n):
        at, _ = past_value(raw, at, TEXT)
    return at, n


def tokenizer(path):
    """Pairs of a GGUF's head that are its vocabulary's, as they stand there, and the number of tokens."""
    with open(path, "rb") as f:
        raw = f.read()
    found, tokens = [], 0
    at, rows = 24, struct.unpack_from("<Q", raw, 16)[0]
    for _ in range(rows):
        begin, (at, _) = at, past_value(raw, at, TEXT)
        key = raw[begin + 8:at].decode()
        at, n = past_value(raw, at + 4, struct.unpack_from("<I", raw, at)[0])
        if key.startswith("tokenizer."):
            found.append(raw[begin:at])
            tokens = n if key == "tokenizer.ggml.tokens" else tokens
    return found, tokens


def pairs_of(a):
    words, a.vocabulary = tokenizer(a.tokenizer) if a.tokenizer else ([pair("tokenizer.ggml.model", "no_vocab")], a.vocabulary)
    return words + [pair("general.architecture", "llama"), pair("general.name", "random"), pair("general.file_type", 2),
            pair("llama.context_length", 131072), pair("llama.embedding_length", a.width), pair("llama.block_count", a.layers),
            pair("llama.feed_forward_length", a.inner), pair("llama.attention.head_count", a.heads),
            pair("llama.attention.head_count_kv", a.kv_heads), pair("llama.attention.key_length", a.d),
            pair("llama.attention.value_length", a.d), pair("llama.rope.dimension_count", a.d),
            pair("llama.attention.layer_norm_rms_epsilon", 1e-5), pair("llama.rope.freq_base", 500000.0),
            pair("llama.vocab_size", a.vocabulary)]


def tensors_of(a):
    yield "token_embd.weight", (a.width, a.vocabulary), Q4_0
    yield "output_norm.weight", (a.width,), F32
    yield "output.weight", (a.width, a.vocabulary), Q4_0
    for i in range(a.layers):
        for name, ne in (("attn_norm", (a.width,)), ("attn_q", (a.width, a.heads * a.d)), ("attn_k", (a.width, a.kv_heads * a.d)),
                         ("attn_v", (a.width, a.kv_heads * a.d)), ("attn_output", (a.heads * a.d, a.width)), ("ffn_norm", (a.width,)),
                         ("ffn_gate", (a.width, a.inner)), ("ffn_down", (a.inner, a.width)), ("ffn_up", (a.width, a.inner))):
            yield f"blk.{i}.{name}.weight", ne, Q4_0 if len(ne) == 2 else F32


def blocks():
    """Random codes with a scale of 1/256."""
    raw = bytearray(os.urandom(BLOCKS * 18))
    raw[0::18], raw[1::18] = b"\x00" * BLOCKS, b"\x1c" * BLOCKS
    return bytes(raw)


def write(f, a):
    pairs, raw = pairs_of(a), blocks()
    tensors = list(tensors_of(a))
    at, rows = 0, b""
    for name, ne, kind in tensors:
        rows += text(name) + struct.pack("<I", len(ne)) + b"".join(struct.pack("<Q", x) for x in ne) + struct.pack("<IQ", kind, at)
        at += (size(ne, kind) + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + rows
    f.write(head + b"\0" * (-len(head) % 32))
    for n, (_, ne, kind) in enumerate(tensors):
        left = size(ne, kind)
        if kind == F32:
            f.write(struct.pack("<f", 1.0) * (left // 4))
        begin = n * 7919 % BLOCKS * 18  # no two tensors alike
        while kind == Q4_0 and left > 0:
            left -= f.write(raw[begin:begin + left])
            begin = 0
        f.write(b"\0" * (-size(ne, kind) % 32))
    return at


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    for name, default in (("--layers", 16), ("--width", 2048), ("--heads", 32), ("--kv-heads", 8), ("-d", 64), ("--inner", 8192),
                          ("--vocabulary", 32000)):
        p.add_argument(name, type=int, default=default)
    p.add_argument("--tokenizer")
    a = p.parse_args()
    if a.width % 32 or a.inner % 32 or a.heads * a.d % 32:
        p.error("--width, --inner and --heads times -d are multiples of 32: blocks lie along them")
    with open(a.file, "wb") as f:
        print(f"{a.file}: {write(f, a) >> 20} MiB")


if __name__ == "__main__":
    main()
