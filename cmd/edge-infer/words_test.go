package main

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// retired are words that this project no longer uses, each with the term that replaces it.
var retired = map[*regexp.Regexp]string{
	regexp.MustCompile(`(?i)\bpictures?\b`):           "image, frame or snapshot",
	regexp.MustCompile(`(?i)\bfilms?\b`):              "video",
	regexp.MustCompile(`(?i)\bfolders?\b`):            "directory",
	regexp.MustCompile(`(?i)\b(is|are|was) told\b`):   "is reported or logged",
	regexp.MustCompile(`(?i)\bdisplaced\b`):           "dropped (newer)",
	regexp.MustCompile(`(?i)\bturned box(es)?\b`):     "oriented box",
	regexp.MustCompile(`(?i)\b(attendant|dossier)\b`): "secondary network, support bundle",
	regexp.MustCompile(`(?i)\b(bell|sight|survey)\b`): "wakeup, predictor builder, zone statistics",
	regexp.MustCompile(`(?i)\blooked at\b`):           "processed, inferred or checked",
}

// allowedWords are texts that name a retired word on purpose: wire names that subscribers know, and terms of others.
func allowedWords(text string) bool {
	for _, known := range []string{
		"entity_picture",
		"such as picture, film and folder", "group of pictures",
	} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}

// TestRetiredWords reads every string of the program (help, messages, logs, the configuration reference), its identifiers and comments, the
// web page and the documentation.
func TestRetiredWords(t *testing.T) {
	check := func(where, text string) {
		for word, use := range retired {
			if word.MatchString(text) && !allowedWords(text) {
				assert.Fail(t, "retired word", "%s: %q: use %s", where, text, use)
			}
		}
	}
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		files := token.NewFileSet()
		var s scanner.Scanner
		s.Init(files.AddFile(path, -1, len(data)), data, nil, scanner.ScanComments)
		for {
			at, kind, literal := s.Scan()
			if kind == token.EOF {
				break
			}
			if slices.Contains([]token.Token{token.STRING, token.IDENT, token.COMMENT}, kind) && !strings.HasPrefix(literal, `"github.com/`) {
				check(files.Position(at).String(), literal)
			}
		}
	}
	page, err := filepath.Glob("internal/web/page/files/*")
	require.NoError(t, err)
	require.NotEmpty(t, page)
	for _, path := range page {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			check(path, line)
		}
	}
	for path, text := range documents(t) {
		if path == "CHANGELOG.md" { // names what was renamed
			continue
		}
		for line := range strings.Lines(text) {
			check(path, line)
		}
	}
}
