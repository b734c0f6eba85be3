#!/usr/bin/env bash
# case D10: re-typed minimal launch line; world size 8; source NVIDIA/Megatron-LM#597
torchrun --nproc_per_node=8 --nnodes=1 pretrain_gpt.py \
  --num-layers 32 \
  --hidden-size 4096 \
  --ffn-hidden-size 11008 \
  --swiglu \
  --num-attention-heads 32 \
  --seq-length 4096 \
  --max-position-embeddings 4096 \
  --normalization RMSNorm \
  --disable-bias-linear \
  --position-embedding-type rope \
  --untie-embeddings-and-output-weights \
  --use-flash-attn \
  --use-distributed-optimizer \
  --bf16 \
  --micro-batch-size 2 \
  --global-batch-size 128
