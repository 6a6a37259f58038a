package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

var (
	hintedFlag = regexp.MustCompile(`(?:^|[\s(\x60"'=,;/])--([a-z][a-z0-9-]*)`)
	// hintedCommand is the last command on the line before a flag.
	hintedCommand = regexp.MustCompile(`.*edge-infer ([a-z]+(?: [a-z]+)?)?[^\n]*$`)
	hintedKey     = regexp.MustCompile(`\b([a-z]+\.[a-z]+(?:_[a-z]+)*)\b`)
)

// foreignFlags are flags of other programs, which texts name or this program passes.
var foreignFlags = map[string]string{
	"--no-pager": "journalctl", "--lines": "journalctl", "--dmesg": "journalctl",
	"--property": "systemd-run", "--collect": "systemd-run", "--pipe": "systemd-run", "--quiet": "systemd-run", "--wait": "systemd-run",
	"--system": "useradd and groupadd", "--runtime": "docker", "--gpus": "docker", "--device": "docker", "--target": "pip",
	"--grid": "YOLOv7's export.py", "--calib": "trtexec",
}

// TestHintsNameFlagsThatExist reads every text of the program. A flag in it must be one of the command that the text names, or else of a
// command that uses the package; a key must be one of the configuration's.
func TestHintsNameFlagsThatExist(t *testing.T) {
	sources := parseSources(t)
	keys := configurationKeys(t)
	flags := 0
	hints := 0
	for path, users := range sources.users() {
		if strings.HasSuffix(path, "/renamed.go") { // former names
			continue
		}
		for where, text := range sources.texts(path) {
			for _, match := range hintedKey.FindAllStringSubmatch(text, -1) {
				section, _, _ := strings.Cut(match[1], ".")
				if keys[section] && strings.Contains(match[1], "_") {
					assert.True(t, keys[match[1]], "%s: there is no key %s: %q", where, match[1], text)
				}
			}
			if hintedFlag.MatchString(text) {
				hints++
			}
			for _, at := range hintedFlag.FindAllStringSubmatchIndex(text, -1) {
				flags++
				flag := "--" + text[at[2]:at[3]]
				assert.True(t, knowsFlag(users, text[:at[0]+1], flag), "%s: there is no flag %s: %q", where, flag, text)
			}
		}
	}
	t.Logf("%d texts name %d flags", hints, flags)
	require.Greater(t, hints, 100)
}

// knowsFlag reports whether a flag after a text exists in the last command of that line, or else in one of the text's users.
func knowsFlag(users []*cobra.Command, before, flag string) bool {
	if foreignFlags[flag] != "" {
		return true
	}
	if match := hintedCommand.FindStringSubmatch(before); match != nil {
		command, _, err := newRoot(io.Discard, io.Discard).Find(strings.Fields(match[1]))
		if err == nil && hasFlag(command, flag) {
			return true
		}
	}
	return slices.ContainsFunc(users, func(c *cobra.Command) bool { return hasFlag(c, flag) })
}

// configurationKeys are the keys of the configuration and, without a period, its sections.
func configurationKeys(t *testing.T) map[string]bool {
	settings, err := config.Settings()
	require.NoError(t, err)
	keys := map[string]bool{}
	for i := range settings {
		keys[settings[i].Key] = true
		section, _, isKey := strings.Cut(settings[i].Key, ".")
		keys[section] = keys[section] || isKey
	}
	return keys
}

// sources are the project's Go files, without tests.
type sources struct {
	files     *token.FileSet
	byPath    map[string]*ast.File
	byPackage map[string][]string // paths
}

func parseSources(t *testing.T) *sources {
	s := &sources{files: token.NewFileSet(), byPath: map[string]*ast.File{}, byPackage: map[string][]string{}}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, filepath.Join("../..", path), nil, 0)
		require.NoError(t, err)
		s.byPath[path] = file
		s.byPackage[filepath.Dir(path)] = append(s.byPackage[filepath.Dir(path)], path)
	}
	return s
}

// users returns the commands that each file of the program is part of: those that its package is imported for. Files of the command's own
// package that are named after a command belong to that one, all others to all. Help also names the flags of run, with which the results
// of commands such as model pull are used.
func (s *sources) users() map[string][]*cobra.Command {
	all := map[string][]*cobra.Command{}
	root := newRoot(io.Discard, io.Discard)
	for _, path := range s.byPackage[theCommand] {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		of := subtree(root)
		if command, _, err := root.Find([]string{name}); err == nil && command != root {
			of = subtree(command)
		}
		for _, used := range s.closure(path) {
			all[used] = append(all[used], of...)
		}
		all[path] = append(all[path], root)
	}
	return all
}

// subtree returns a command and those below it.
func subtree(c *cobra.Command) []*cobra.Command {
	c.InitDefaultHelpFlag()
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		all = append(all, subtree(below)...)
	}
	return all
}

// closure returns a file and those of the packages that it imports, directly or through others.
func (s *sources) closure(path string) []string {
	seen := map[string]bool{path: true}
	for waiting := []string{path}; len(waiting) > 0; {
		at := waiting[0]
		waiting = waiting[1:]
		for _, imported := range s.byPath[at].Imports {
			dir := strings.TrimPrefix(strings.Trim(imported.Path.Value, `"`), module)
			for _, next := range s.byPackage[dir] {
				if !seen[next] {
					seen[next] = true
					waiting = append(waiting, next)
				}
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// texts returns the strings of a file by position. Those that are joined by + are one, with an ellipsis for what is no literal.
func (s *sources) texts(path string) map[string]string {
	all := map[string]string{}
	ast.Inspect(s.byPath[path], func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
			all[s.files.Position(n.Pos()).String()] = joined(n)
			return false
		case *ast.BasicLit:
			all[s.files.Position(n.Pos()).String()] = joined(n)
		}
		return true
	})
	return all
}

// joined returns the text of an expression.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return joined(e.X) + joined(e.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.ParenExpr:
		return joined(e.X)
	case *ast.CallExpr:
		parts := make([]string, len(e.Args))
		for i, argument := range e.Args {
			parts[i] = joined(argument)
		}
		return strings.Join(parts, " ")
	}
	return "…"
}
