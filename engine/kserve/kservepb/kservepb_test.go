package kservepb_test

import (
	"testing"

	"github.com/edge-infer/edge-infer/internal/prototest"
)

func TestGeneratedCodeIsCurrent(t *testing.T) { prototest.Current(t, "kserve") }
