package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// A reference is a placeholder for a secret: ${NAME} for an environment variable, ${file:PATH} for the content of a file, both anywhere in
// a text. $${ is a literal ${.
var referencePattern = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

const referenceFile = "file:"

// resolver replaces references in a configuration by the current environment variables and file contents.
type resolver struct {
	// Lookup returns an environment variable.
	Lookup func(name string) (value string, set bool)
	// Secret is called with each resolved value; may be nil.
	Secret func(value string)

	found []missingReference
}

// missingReference reports a reference that cannot be resolved, in the value of a key.
type missingReference struct {
	Key string
	err error
}

// Error names the key, the reference and the reason.
func (m missingReference) Error() string { return fmt.Sprintf("%s: %v", m.Key, m.err) }

// Unwrap returns the reason.
func (m missingReference) Unwrap() error { return m.err }

// Resolve replaces the references in every text below the value that configuration points to, and returns those that cannot be resolved,
// each with its key.
func (r *resolver) Resolve(configuration any) []missingReference {
	r.found = nil
	r.resolve(reflect.ValueOf(configuration).Elem(), "")
	return r.found
}

// resolve changes every text below value; key is the path of value in the file.
func (r *resolver) resolve(value reflect.Value, key string) {
	switch value.Kind() {
	case reflect.String:
		if text := value.String(); strings.Contains(text, "${") {
			value.SetString(r.text(text, key))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("yaml"), ",")
			if name != "" && name != "-" {
				r.resolve(value.Field(i), strings.TrimPrefix(key+"."+name, "."))
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			r.resolve(value.Index(i), fmt.Sprintf("%s[%d]", key, i))
		}
	}
}

// text resolves the references of one value. Within an address a secret is escaped, so that any character may be in a password.
func (r *resolver) text(text, key string) string {
	address := strings.Index(text, "://")
	var made strings.Builder
	last := 0
	for _, at := range referencePattern.FindAllStringSubmatchIndex(text, -1) {
		whole, name := text[at[0]:at[1]], text[at[2]:at[3]]
		made.WriteString(text[last:at[0]])
		last = at[1]
		if strings.HasPrefix(whole, "$$") {
			made.WriteString(whole[1:])
			continue
		}
		secret, err := r.secret(name)
		if err != nil {
			r.found = append(r.found, missingReference{key, err})
			continue
		}
		if r.Secret != nil {
			r.Secret(secret)
		}
		if address >= 0 && address < at[0] {
			secret = strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")
		}
		made.WriteString(secret)
	}
	made.WriteString(text[last:])
	return made.String()
}

// secret returns the value of the text inside ${}, without a file's final line break.
func (r *resolver) secret(name string) (string, error) {
	path, isFile := strings.CutPrefix(name, referenceFile)
	if !isFile {
		value, set := r.Lookup(name)
		if !set {
			return "", fmt.Errorf("${%s}: there is no such environment variable (set it, or write ${file:PATH}, or $${ for a plain ${)", name)
		}
		return value, nil
	}
	text, err := boundedfile.Read(path, boundedfile.Small)
	if err != nil {
		var place *os.PathError
		if errors.As(err, &place) {
			err = place.Err
		}
		return "", fmt.Errorf("${%s}: %w (name a file that this user can read)", name, err)
	}
	if secret := strings.TrimRight(string(text), "\r\n"); secret != "" {
		return secret, nil
	}
	return "", fmt.Errorf("${%s}: the file is empty", name)
}
