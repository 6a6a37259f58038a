package catalogue

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Listing is the catalogue and the models installed on this machine.
type Listing struct {
	Version int    `json:"v"`
	Dir     string `json:"directory"`
	Models  []Item `json:"models"`
}

// Item is a model of a Listing. If it is not in the catalogue, only its name is known.
type Item struct {
	Entry
	Installed bool `json:"here"`
}

// List returns the models of the catalogue, then the other installed ones.
func (s Store) List() (*Listing, error) {
	here, err := s.Names()
	if err != nil {
		return nil, err
	}
	l := &Listing{Version: 1, Dir: s.Dir, Models: []Item{}}
	for _, e := range Entries() {
		at := slices.Index(here, e.Name)
		l.Models = append(l.Models, Item{e, at >= 0})
		if at >= 0 {
			here = slices.Delete(here, at, at+1)
		}
	}
	for _, name := range here {
		l.Models = append(l.Models, Item{Entry{Name: name}, true})
	}
	return l, nil
}

// Print writes the listing as a table.
func (l *Listing) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tFINDS\tINPUT\tSIZE\tLICENCE\tACCURACY\tINSTALLED")
	for _, m := range l.Models {
		here, size := "-", "-"
		if m.Installed {
			here = "yes"
		}
		if m.Bytes > 0 {
			size = fmt.Sprintf("%.1f MB", float64(m.Bytes)/1e6)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, orDash(strings.Join(m.Finds, ", ")), orDash(m.Input), size, orDash(m.Licence),
			orDash(m.Accuracy), here)
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Print writes the result as text.
func (r *PullResult) Print(out io.Writer) error {
	status := "downloaded and verified"
	if r.AlreadyPresent {
		status = "is already downloaded"
	}
	_, err := fmt.Fprintf(out, "%s %s: %s\nrun it with edge-infer --model %s\n", r.Name, status, r.Path, r.Name)
	return err
}

// Print writes the entry as text.
func (e *Entry) Print(out io.Writer) error {
	for _, line := range []struct{ name, value string }{
		{"name", e.Name},
		{"finds", strings.Join(e.Finds, ", ")},
		{"task", e.Task},
		{"classes", e.Classes},
		{"input", e.Input},
		{"images", e.Preprocess.String()},
		{"head", e.Layout},
		{"accuracy", e.Accuracy},
		{"tried", e.Tried},
		{"licence", e.Licence},
		{"publisher", e.Publisher},
		{"bytes", fmt.Sprint(e.Bytes)},
		{"url", e.URL},
		{"sha256", e.SHA256},
	} {
		if _, err := fmt.Fprintf(out, "%-11s%s\n", line.name, line.value); err != nil {
			return err
		}
	}
	return nil
}
