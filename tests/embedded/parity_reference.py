"""Run by the worker environment's Python: sentences in as JSON lines, transformers' tokens and vectors out as JSON."""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

folder, path = sys.argv[1:]
sentences = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder).eval()
out = []
with torch.no_grad():
    for sentence in sentences:
        given = tokenizer(sentence, return_tensors="pt", truncation=True, max_length=256, padding=False)
        states = model(**given).last_hidden_state[0].mean(0)
        out.append([given["input_ids"][0].tolist(), torch.nn.functional.normalize(states, dim=0).tolist()])
sys.stdout.write(json.dumps(out))
