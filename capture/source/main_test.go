package source

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	SilenceDecoders()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if path, _ := compiled(); path != "" {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		os.Exit(code)
	}))
}
