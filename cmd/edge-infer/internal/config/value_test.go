package config

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestOnOff(t *testing.T) {
	for argument, want := range map[string]bool{
		"--mqtt-control=off": false, "--mqtt-control=no": false, "--mqtt-control=false": false, "--mqtt-control=on": true, "--mqtt-control": true,
	} {
		c := Default()
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		Flags(c, flags, AllSections())
		require.NoError(t, flags.Parse([]string{argument}))
		require.Equal(t, want, c.MQTT.Control, argument)
	}
	c := Default()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	Flags(c, flags, AllSections())
	require.ErrorContains(t, flags.Parse([]string{"--mqtt-control=maybe"}), `"maybe" is not on or off`)
}
