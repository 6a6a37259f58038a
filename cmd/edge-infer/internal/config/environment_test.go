package config

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestStrayVariables(t *testing.T) {
	require.Equal(t, []string{
		"environment EDGE_INFER_CONFIDENCEE is not read, did you mean EDGE_INFER_CONFIDENCE?",
		"environment EDGE_INFER_MQTT_PASSWORT is not read, did you mean EDGE_INFER_MQTT_PASSWORD?",
		"environment EDGE_INFER_CONFIG is not read, give --config FILE",
		"environment EDGE_INFER_XYZZY is not read; edge-infer config defaults names every variable",
		"environment EDGE_INFER_DEVICE is not read, did you mean EDGE_INFER_GPU?",
		"environment EDGE_INFER_SOURCE is not read, did you mean EDGE_INFER_CAMERA?",
		"environment EDGE_INFER_HOST is not read, did you mean EDGE_INFER_MQTT?",
		"environment EDGE_INFER_HALF is not read, did you mean EDGE_INFER_PRECISION=fp16?",
		"environment EDGE_INFER_PREDICT is not read; edge-infer config defaults names every variable",
	}, StrayVariables([]string{
		"PATH=/bin", "EDGE_INFER_CONFIDENCE=0.5", "EDGE_INFER_CONFIDENCEE=0.5", "EDGE_INFER_CAMERA=demo", "EDGE_INFER_MQTT_PASSWORT=secret",
		"EDGE_INFER_CONFIG=x",
		"EDGE_INFER_XYZZY=", "EDGE_INFER_TENSORRT=/opt", "EDGE_INFER_TEST_GPU=1", "EDGE_INFER_DEVICE=1", "EDGE_INFER_GPU=1",
		"EDGE_INFER_SOURCE=0", "EDGE_INFER_HOST=h", "EDGE_INFER_HALF=1", "EDGE_INFER_PREDICT=1",
	}))
}

// A setting without a flag is set by a variable named after its key.
func TestVariableOfASettingWithoutAFlag(t *testing.T) {
	environment := map[string]string{"EDGE_INFER_RUNTIME_GC_PERCENT": "50", "EDGE_INFER_WEB_USER": "me", "EDGE_INFER_GPU": "2"}
	s := Sources{Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set }}
	c, _ := s.Check()
	require.Equal(t, "50", c.Runtime.GC)
	require.Equal(t, "me", c.Web.User)
	require.Equal(t, "2", c.Engine.GPU)
}

// A flag that does not exist is answered with the setting or the flag that was meant, as far as the command has it.
func TestFlagHint(t *testing.T) {
	set := func(scope Scope, names ...string) *pflag.FlagSet {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		(&Sources{Scope: scope}).Flags(flags)
		for _, name := range names {
			flags.String(name, "", "")
		}
		return flags
	}
	run, files := set(AllSections(), "camera"), set(ImageSections(), "save", "video")
	for flag, want := range map[string][2]string{ // of run and of infer
		"source":      {", did you mean --camera?", ""},
		"url":         {", did you mean --camera?", ""},
		"host":        {", did you mean --mqtt?", ""},
		"show":        {", did you mean --web 127.0.0.1:8080?", ""},
		"fps":         {" (set cameras[].rate in the file of --config)", ""},
		"stall":       {" (set cameras[].stall in the file of --config)", ""},
		"predict":     {"", ""},
		"broker":      {", did you mean --mqtt?", ""},
		"save":        {" (to save annotated images use edge-infer infer FILES --save DIR)", ", did you mean --save?"},
		"fp16":        {", did you mean --precision fp16?", ", did you mean --precision fp16?"},
		"onnx":        {", did you mean --model?", ", did you mean --model?"},
		"Conf_Thres":  {", did you mean --confidence?", ", did you mean --confidence?"},
		"only":        {", did you mean --classes?", ", did you mean --classes?"},
		"device-name": {", did you mean --name?", ""},
		"mqtt-ca":     {" (set mqtt.ca in the file of --config, or EDGE_INFER_MQTT_CA)", ""},
		"gc-percent":  {" (set runtime.gc_percent in the file of --config, or EDGE_INFER_RUNTIME_GC_PERCENT)", ""},
		"remote-ca": {
			" (set remote.ca in the file of --config, or EDGE_INFER_REMOTE_CA)",
			" (set remote.ca in the file of --config, or EDGE_INFER_REMOTE_CA)",
		},
		"nonsense-flag": {"", ""},
	} {
		require.Equal(t, want, [2]string{FlagHint(run, flag), FlagHint(files, flag)}, flag)
	}
	formats := pflag.NewFlagSet("", pflag.ContinueOnError)
	formats.String("format", "jpg", "jpg or png")
	require.Empty(t, FlagHint(formats, "save-txt"), "not a value of this --format")
}
