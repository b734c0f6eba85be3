#!/usr/bin/env bash
# case D04: re-typed minimal launch line; world size 64; source modelscope/ms-swift#5737
torchrun --nproc_per_node=8 --nnodes=8 pretrain_gpt.py \
  --num-layers 46 \
  --tensor-model-parallel-size 8 \
  --pipeline-model-parallel-size 4 \
  --context-parallel-size 1 \
  --expert-model-parallel-size 16 \
  --expert-tensor-parallel-size 1 \
  --sequence-parallel \
  --recompute-granularity full \
  --recompute-method uniform \
  --recompute-num-layers 1 \
  --micro-batch-size 2 \
  --global-batch-size 16 \
  --seq-length 4096
