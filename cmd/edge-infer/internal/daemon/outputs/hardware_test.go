package outputs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHardware(t *testing.T) {
	for _, test := range []struct {
		files               map[string]string
		manufacturer, model string
	}{
		{nil, "", ""},
		{
			map[string]string{"proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\x00"},
			"NVIDIA",
			"NVIDIA Jetson Orin Nano Developer Kit",
		},
		{map[string]string{"sys/class/dmi/id/sys_vendor": "ACME\n", "sys/class/dmi/id/product_name": "Box 3\n"}, "ACME", "Box 3"},
	} {
		root := t.TempDir()
		for path, text := range test.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
		}
		manufacturer, model := hardware(root)
		require.Equal(t, test.manufacturer, manufacturer)
		require.Equal(t, test.model, model)
	}
}

func TestReachable(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8080/", reachable("http://127.0.0.1:8080/"))
	require.Equal(t, "https://"+host+":8443/", reachable("https://0.0.0.0:8443/"))
	require.Equal(t, "http://"+host+":80/", reachable("http://[::]:80/"))
}
