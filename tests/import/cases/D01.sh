#!/usr/bin/env bash
# case D01: re-typed minimal launch line; world size 2; source NVIDIA/Megatron-LM#381
torchrun --nproc_per_node=2 --nnodes=1 pretrain_gpt.py \
  --num-layers 7 \
  --hidden-size 1024 \
  --num-attention-heads 16 \
  --seq-length 1024 \
  --max-position-embeddings 1024 \
  --micro-batch-size 1 \
  --global-batch-size 8 \
  --tensor-model-parallel-size 1 \
  --pipeline-model-parallel-size 2
