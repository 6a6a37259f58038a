package main

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/internal/spelling"
)

// refusal returns the error of a command line that is not valid.
func refusal(t *testing.T, args ...string) string {
	root := newRoot(&bytes.Buffer{}, &bytes.Buffer{})
	root.SetArgs(args)
	root.SetOut(&bytes.Buffer{})
	root.SetErr(&bytes.Buffer{})
	err := root.Execute()
	require.Error(t, err, args)
	return err.Error()
}

// eachCommand calls visit with every command that is not hidden, and the words that lead to it.
func eachCommand(command *cobra.Command, path []string, visit func(command *cobra.Command, path []string)) {
	visit(command, path)
	for _, sub := range command.Commands() {
		if sub.IsAvailableCommand() {
			eachCommand(sub, append(slices.Clone(path), sub.Name()), visit)
		}
	}
}

// Whatever people type as a flag of other tools, for every command: what is suggested exists in this command.
func TestSuggestedFlagsExist(t *testing.T) {
	words := slices.Collect(maps.Keys(spelling.Flags()))
	for _, v := range []spelling.Vocabulary{spelling.Commands(), spelling.Keys()} {
		words = slices.AppendSeq(words, maps.Keys(v))
	}
	words = append(words, "rate", "roi", "stall", "gc-percent", "mqtt-ca", "web-certificate", "camra", "mdoel", "upload-bucket")
	suggestion := regexp.MustCompile(`--([a-z][a-z0-9-]*)`)
	suggested := map[string]int{}
	eachCommand(newRoot(&bytes.Buffer{}, &bytes.Buffer{}), nil, func(command *cobra.Command, path []string) {
		for _, word := range words {
			if command.Flags().Lookup(word) != nil || word == "help" || command.Name() == "completion" {
				continue
			}
			text := refusal(t, append(slices.Clone(path), "--"+word)...)
			rest, unknown := strings.CutPrefix(text, "unknown flag: --"+word)
			require.True(t, unknown, "%v: %s", path, text)
			if rest == " (to save annotated images use edge-infer infer FILES --save DIR)" {
				require.NotNil(t, command.Flags().Lookup("camera"), "%v", path)
				continue
			}
			for _, name := range suggestion.FindAllStringSubmatch(rest, -1) {
				suggested[command.CommandPath()]++
				require.NotNil(t, command.Flags().Lookup(name[1]), "%s --%s: %s", command.CommandPath(), word, rest)
			}
		}
	})
	require.Greater(t, suggested["edge-infer run"], 80)
	require.Greater(t, suggested["edge-infer infer"], 40)
}

// Whatever people type as a command: what is suggested is a command of the same level.
func TestSuggestedCommandsExist(t *testing.T) {
	eachCommand(newRoot(&bytes.Buffer{}, &bytes.Buffer{}), nil, func(command *cobra.Command, path []string) {
		if !command.HasAvailableSubCommands() || command.Name() == "completion" {
			return
		}
		for _, word := range append(slices.Collect(maps.Keys(spelling.Commands())), "rum", "chek", "lst") {
			if found, _, _ := command.Find([]string{word}); found != command {
				continue
			}
			text := refusal(t, append(slices.Clone(path), word)...)
			require.Contains(t, text, "unknown command \""+word+"\"")
			_, near, _ := strings.Cut(text, "did you mean ")
			for _, name := range strings.Split(strings.TrimSuffix(near, "?"), " or ") {
				if name != "" {
					found, _, err := command.Find([]string{name})
					require.NoError(t, err)
					require.Equal(t, command, found.Parent(), "%s -> %s", word, name)
				}
			}
		}
	})
	for word, want := range map[string]string{
		"predict": "infer or run", "detect": "infer or run", "track": "run or infer", "val": "validate", "rum": "run", "download": "model",
	} {
		require.Equal(t, "unknown command \""+word+"\", did you mean "+want+"?", refusal(t, word))
	}
	require.Equal(t, `unknown command "train"`, refusal(t, "train"))
	require.Equal(t, `unexpected argument "predict"`, refusal(t, "doctor", "predict"), "doctor has no commands")
}

// The model that errors name is in the catalogue.
func TestSuggestedModelExists(t *testing.T) {
	_, err := catalogue.Lookup("yolox-s")
	require.NoError(t, err)
}
