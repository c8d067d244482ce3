"""llama.cpp's server (PyPI xllamacpp) with a model made here: a LLaMA of one layer whose weights come from a seed.

Its words mean nothing; the way they come is real. Prints its address, then serves until it is killed.
"""

import sys
import time

import gguf
import numpy as np
import xllamacpp

WIDTH, INNER, HEADS, CONTEXT = 64, 128, 4, 8192
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def tokens():
    named = [(b"<unk>", UNKNOWN), (b"<s>", CONTROL), (b"</s>", CONTROL)]
    of_bytes = [(b"<0x%02X>" % byte, BYTE) for byte in range(256)]
    printable = [(bytes([byte]), NORMAL) for byte in range(32, 127)]
    return named + of_bytes + printable


def make(path):
    rng = np.random.default_rng(1)
    words = tokens()
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(1)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(words))
    out.add_file_type(0)
    out.add_tokenizer_model("llama")
    out.add_token_list([word for word, _ in words])
    out.add_token_scores([0.0] * len(words))
    out.add_token_types([kind for _, kind in words])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)

    def drawn(name, *shape):
        out.add_tensor(name, (rng.standard_normal(shape) * 0.1).astype(np.float32))

    drawn("token_embd.weight", len(words), WIDTH)
    drawn("output.weight", len(words), WIDTH)
    for name in ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"]:
        out.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
        drawn(f"blk.0.{name}.weight", WIDTH, WIDTH)
    drawn("blk.0.ffn_gate.weight", INNER, WIDTH)
    drawn("blk.0.ffn_up.weight", INNER, WIDTH)
    drawn("blk.0.ffn_down.weight", WIDTH, INNER)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    path = sys.argv[1]
    make(path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[2])
    params.n_ctx = CONTEXT
    params.n_parallel = 2
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"Running on {server.listening_address}", flush=True)
    while True:
        time.sleep(3600)


main()
