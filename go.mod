module github.com/edge-infer/edge-infer

go 1.26
