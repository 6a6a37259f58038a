package source

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == cameraCommand {
		serveCamera()
		return
	}
	SilenceDecoders()
	if os.Getenv(csiChild) != "" || strings.HasPrefix(os.Getenv(decoderFault), "hang") { // their last tests leave captures that hang
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := serverDir(); err == nil {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}
