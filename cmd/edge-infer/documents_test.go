package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// readmeLimit is the highest number of lines of the README.
const readmeLimit = 100

var (
	markdownLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	makeTarget   = regexp.MustCompile("(?:`|^    |&& )make ((?:[a-z-]+ ?)+)")
	// commandLine is one in backticks or indented as code, up to what follows it on the line.
	commandLine  = regexp.MustCompile("(?:`|^(?:    )?(?:sudo )?|&& |bin/)edge-infer ([^`#|&]*)")
	target       = regexp.MustCompile(`(?m)^([a-z-]+):`)
	goTest       = regexp.MustCompile("go test [^`]*")
	dirName      = regexp.MustCompile(`\./[a-z0-9/_.-]+`)
	runPattern   = regexp.MustCompile(`-(run|bench) '?([^' ]+)`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)`)
	// wordCharacter is in every word, but not in the bars of a table.
	wordCharacter = regexp.MustCompile(`[A-Za-z0-9]`)
	flagName      = regexp.MustCompile(`(?:^| )(--?[a-z][a-z0-9-]*)`)
)

// documents are what people read, by path from the root.
func documents(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "cross/*.md", "engine/demo/*.md", "mqtt/schema/*.md", "deploy/*/*.md"} {
		paths, err := filepath.Glob("../../" + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			all[strings.TrimPrefix(path, "../../")] = string(data)
		}
	}
	require.Contains(t, all, "README.md")
	return all
}

func TestREADMEIsShort(t *testing.T) {
	assert.LessOrEqual(t, strings.Count(documents(t)["README.md"], "\n"), readmeLimit)
}

func TestDocumentsNameWhatThereIs(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, match := range target.FindAllSubmatch(makefile, -1) {
		targets[string(match[1])] = true
	}
	tests := testFunctions(t)
	for path, text := range documents(t) {
		for number, line := range strings.Split(text, "\n") {
			for _, match := range markdownLink.FindAllStringSubmatch(line, -1) {
				_, err := os.Stat(filepath.Join("../..", filepath.Dir(path), match[1]))
				assert.NoError(t, err, "%s:%d", path, number+1)
			}
			for _, match := range makeTarget.FindAllStringSubmatch(line, -1) {
				for name := range strings.FieldsSeq(match[1]) {
					assert.True(t, targets[name], "%s:%d: make %s", path, number+1, name)
				}
			}
			for _, match := range commandLine.FindAllStringSubmatch(line, -1) {
				checkCommand(t, match[1], fmt.Sprintf("%s:%d: edge-infer %s", path, number+1, match[1]))
			}
			for _, command := range goTest.FindAllString(line, -1) {
				checkGoTest(t, tests, command, fmt.Sprintf("%s:%d: %s", path, number+1, command))
			}
		}
	}
}

// checkCommand looks for the command that a line names and for its flags.
func checkCommand(t *testing.T, line, where string) {
	command := newRoot(io.Discard, io.Discard)
	command.InitDefaultHelpFlag()
	command.InitDefaultHelpCmd()
	words := strings.Fields(line)
	for len(words) > 0 {
		at, _, err := command.Find(words[:1])
		if err != nil || at == command {
			break
		}
		command, words = at, words[1:]
	}
	for _, match := range flagName.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		assert.True(t, hasFlag(command, match[1]), where)
	}
}

func hasFlag(command *cobra.Command, name string) bool {
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return command.Flags().Lookup(long) != nil || command.InheritedFlags().Lookup(long) != nil || long == "help"
	}
	found := false
	command.Flags().VisitAll(func(f *pflag.Flag) { found = found || "-"+f.Shorthand == name })
	return found || name == "-h"
}

// testFunctions lists the functions that go test runs, by directory.
func testFunctions(t *testing.T) map[string][]string {
	all := map[string][]string{}
	for _, path := range goFiles(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		for _, match := range testFunction.FindAllSubmatch(data, -1) {
			all[filepath.Dir(path)] = append(all[filepath.Dir(path)], string(match[1]))
		}
	}
	return all
}

// checkGoTest looks for the directories of a go test command, and in them for a test and a benchmark that it would run.
func checkGoTest(t *testing.T, tests map[string][]string, command, where string) {
	var names []string
	for _, dir := range dirName.FindAllString(command, -1) {
		dir, below := strings.CutSuffix(strings.TrimPrefix(dir, "./"), "...")
		dir = strings.TrimSuffix(dir, "/")
		assert.DirExists(t, filepath.Join("../..", dir), where)
		for at, of := range tests {
			if at == dir || below && strings.HasPrefix(at, dir) {
				names = append(names, of...)
			}
		}
	}
	for _, match := range runPattern.FindAllStringSubmatch(command, -1) {
		if match[2] == "xxx" { // none, for benchmarks
			continue
		}
		pattern, err := regexp.Compile(match[2])
		require.NoError(t, err)
		found := slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(name, "Benchmark") == (match[1] == "bench") && pattern.MatchString(name)
		})
		assert.True(t, found, where)
	}
}

// Hand-written pages stay short enough to be read.
func TestPagesAreShort(t *testing.T) {
	generated := []string{"docs/configuration.md", "docs/mqtt-messages.md"}
	for path, text := range documents(t) {
		if strings.HasPrefix(path, "docs/") && !slices.Contains(generated, path) {
			words := slices.DeleteFunc(strings.Fields(text), func(word string) bool { return !wordCharacter.MatchString(word) })
			assert.LessOrEqual(t, len(words), 1000, path)
		}
	}
}

// The index of the documentation links every page.
func TestIndexListsEveryPage(t *testing.T) {
	all := documents(t)
	for path := range all {
		if name, found := strings.CutPrefix(path, "docs/"); found && name != "README.md" {
			assert.Contains(t, all["docs/README.md"], "("+name+")")
		}
	}
}

// The alerts look at metrics that there are.
func TestAlertsLookAtMetricsThatThereAre(t *testing.T) {
	rules, err := os.ReadFile("../../docs/prometheus/alerts.yaml")
	require.NoError(t, err)
	list, err := os.ReadFile("internal/web/METRICS.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`edge_infer_\w+`).FindAllString(string(rules), -1)
	require.NotEmpty(t, named)
	for _, metric := range named {
		assert.Contains(t, string(list), "| `"+metric+"` |")
	}
}

// The recipes run as they are printed: no configuration needs a variable that the page does not set.
func TestRecipesNeedNoVariables(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml config\n(.*?)```").FindAllSubmatch(page, -1)
	require.GreaterOrEqual(t, len(blocks), 4)
	for _, block := range blocks {
		path := filepath.Join(t.TempDir(), "recipe.yaml")
		require.NoError(t, os.WriteFile(path, block[1], 0o600))
		unset := func(name string) (string, bool) { return "", strings.Contains(string(page), "export "+name+"=") }
		sources := config.Sources{File: path, Environment: unset}
		_, found := sources.Check()
		require.Empty(t, found, "%s", block[1])
	}
}
