#!/usr/bin/env bash
# case D20, run 1: source NVIDIA/Megatron-LM#1031; vocabulary, sequence and batch are not stated there: Llama 2's shapes
torchrun --nproc_per_node=8 --nnodes=96 pretrain_gpt.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 \
  --sequence-parallel --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
  --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear \
  --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000 --seq-length 4096 \
  --max-position-embeddings 4096 --attention-dropout 0 --hidden-dropout 0 --bf16 --use-distributed-optimizer \
  --overlap-grad-reduce --micro-batch-size 1 --global-batch-size 1536
