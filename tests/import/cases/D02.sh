#!/usr/bin/env bash
# case D02: re-typed minimal launch line; world size 4; source NVIDIA/Megatron-LM#1304
torchrun --nproc_per_node=4 --nnodes=1 pretrain_gpt.py \
  --num-layers 30 \
  --pipeline-model-parallel-size 4 \
  --hidden-size 2048 \
  --num-attention-heads 16 \
  --seq-length 2048 \
  --micro-batch-size 1 \
  --global-batch-size 16
