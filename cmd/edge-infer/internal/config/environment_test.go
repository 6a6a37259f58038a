package config

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestStrayVariables(t *testing.T) {
	require.Equal(t, []string{
		"environment EDGE_INFER_CONFF is not read, did you mean EDGE_INFER_CONF?",
		"environment EDGE_INFER_MQTT_PASSWORT is not read, did you mean EDGE_INFER_MQTT_PASSWORD?",
		"environment EDGE_INFER_CONFIG is not read, give --config FILE",
		"environment EDGE_INFER_XYZZY is not read; edge-infer config defaults names every variable",
		"environment EDGE_INFER_DEVICE is called EDGE_INFER_GPU now",
	}, StrayVariables([]string{
		"PATH=/bin", "EDGE_INFER_CONF=0.5", "EDGE_INFER_CONFF=0.5", "EDGE_INFER_CAMERA=demo", "EDGE_INFER_MQTT_PASSWORT=secret",
		"EDGE_INFER_CONFIG=x",
		"EDGE_INFER_XYZZY=", "EDGE_INFER_TENSORRT=/opt", "EDGE_INFER_TEST_GPU=1", "EDGE_INFER_DEVICE=1", "EDGE_INFER_GPU=1",
	}))
}

// Flags and variables are understood by the names that they had, and the names of now go before them.
func TestFormerNames(t *testing.T) {
	load := func(environment map[string]string, args ...string) (*Config, []string) {
		s := Sources{Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set }}
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Flags(flags)
		around := pflag.NewFlagSet("root", pflag.ContinueOnError) // as the root command takes the flags of run
		around.AddFlagSet(flags)
		require.NoError(t, around.Parse(args))
		c, err := s.Load()
		require.NoError(t, err)
		return c, FormerFlags(around)
	}
	c, said := load(nil, "--name", "gate", "--device", "1,2")
	require.Equal(t, "gate", c.Name)
	require.Equal(t, "1,2", c.Engine.GPU)
	require.Equal(t, []string{"--device is called --gpu now", "--name is called --device-name now"}, said)
	c, said = load(map[string]string{"EDGE_INFER_NAME": "yard", "EDGE_INFER_DEVICE": "3"}, "--gpu", "1")
	require.Equal(t, "yard", c.Name)
	require.Equal(t, "1", c.Engine.GPU)
	require.Empty(t, said)
	c, _ = load(map[string]string{
		"EDGE_INFER_DEVICE_NAME": "gate", "EDGE_INFER_NAME": "yard", "EDGE_INFER_GPU": "2", "EDGE_INFER_DEVICE": "3",
	})
	require.Equal(t, "gate", c.Name)
	require.Equal(t, "2", c.Engine.GPU)
}
