#!/usr/bin/env bash
# case D07: source pytorch/torchtitan pull request 2577; widths other than the heads are illustrative
torchrun --nproc_per_node=8 -m torchtitan.train --parallelism.tensor_parallel_degree 4 \
  --training.local_batch_size 2 --training.seq_len 2048
