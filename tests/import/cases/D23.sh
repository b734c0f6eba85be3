#!/usr/bin/env bash
# case D23: re-typed minimal launch line; world size 1472; source aliyun/SimAI#202
torchrun --nproc_per_node=8 --nnodes=184 pretrain_gpt.py \
  --num-layers 40 \
  --hidden-size 5120 \
  --num-attention-heads 40 \
  --ffn-hidden-size 11008 \
  --swiglu \
  --seq-length 4096 \
  --vocab-size 50257 \
  --tensor-model-parallel-size 8 \
  --pipeline-model-parallel-size 8 \
  --sequence-parallel \
  --micro-batch-size 1 \
  --global-batch-size 32
