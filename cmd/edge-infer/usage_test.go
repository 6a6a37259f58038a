package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// --help lists the common flags, --help-all every flag in one group, and none that is hidden.
func TestHelpIsInGroups(t *testing.T) {
	help := func(args ...string) string {
		var out bytes.Buffer
		root := newRoot(&out, &out)
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		require.NoError(t, root.Execute())
		return out.String()
	}
	text := help("run", "--help-all")
	_, flags, found := strings.Cut(text, "\nFlags:\n")
	require.True(t, found, text)
	flags, rest, found := strings.Cut(flags, "\nMore flags:\n")
	require.True(t, found, text)
	var names []string
	for line := range strings.Lines(flags) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "--"), " ")
		names = append(names, name)
	}
	require.Equal(t, common(), names, "in this order")
	for _, section := range []string{"model", "engine", "remote", "detect", "mqtt", "events", "web", "motion"} {
		require.Contains(t, rest, "\nSection "+section+" of the configuration:\n")
	}
	own, _, _ := strings.Cut(rest, "\nSection ")
	for _, name := range []string{"frames", "log-format"} {
		require.Contains(t, own, "--"+name+" ")
	}
	for _, c := range newRoot(&bytes.Buffer{}, &bytes.Buffer{}).Commands() {
		if c.Name() != "run" {
			continue
		}
		for _, g := range grouped(c.LocalFlags()) {
			require.True(t, g.flags.HasAvailableFlags(), g.title)
		}
	}
	require.NotContains(t, text, "--root")
	require.LessOrEqual(t, strings.Count(text, "\n      --")+strings.Count(text, "\n  -"), 61)
	short := help("run", "--help")
	require.NotContains(t, short, "More flags:")
	require.Contains(t, short, "run --help-all lists every flag")

	root := help("--help")
	require.Contains(t, root, "\nCommands:\n")
	require.Contains(t, root, "  quantize ")
	require.Contains(t, root, "edge-infer completion bash")
	require.Contains(t, help("config", "--help"), "Available Commands:", "a command without settings")
}
