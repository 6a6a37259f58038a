package gstreamer

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Silence()
	goleak.VerifyTestMain(m)
}
