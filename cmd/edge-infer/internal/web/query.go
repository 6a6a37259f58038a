package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// withParameters rejects requests with unknown or repeated query parameters, which would otherwise be ignored. It is not used for images
// and streams, because dashboards append a number to their addresses to bypass caches.
func withParameters(next http.HandlerFunc, known ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			writeError(w, http.StatusBadRequest, errors.New("the query is invalid"))
			return
		}
		for name, values := range query {
			switch {
			case !slices.Contains(known, name) && len(known) == 0:
				err = fmt.Errorf("unknown parameter %q: this address takes none", name)
			case !slices.Contains(known, name):
				err = fmt.Errorf("unknown parameter %q: this address takes %s", name, strings.Join(known, ", "))
			case len(values) > 1:
				err = fmt.Errorf("%s is given %d times", name, len(values))
			}
		}
		if err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		next(w, r)
	}
}
