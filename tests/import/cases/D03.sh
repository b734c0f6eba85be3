#!/usr/bin/env bash
# case D03: re-typed minimal launch line; world size 16; source NVIDIA/Megatron-LM#468
torchrun --nproc_per_node=8 --nnodes=2 pretrain_gpt.py \
  --num-layers 80 \
  --pipeline-model-parallel-size 16 \
  --num-layers-per-virtual-pipeline-stage 2 \
  --hidden-size 8192 \
  --num-attention-heads 64 \
  --seq-length 2048 \
  --micro-batch-size 1 \
  --global-batch-size 256
