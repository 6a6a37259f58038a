package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"sync"
)

// Browser is a browser that gets notifications, by its own wish on the page.
type Browser struct {
	Endpoint string   `yaml:"endpoint"`          // of its push service; who knows it can write to the browser
	Keys     string   `yaml:"keys"`              // as Webhook.Secret of the format WebPush
	Cameras  []string `yaml:"cameras,omitempty"` // empty for all
	Labels   []string `yaml:"labels,omitempty"`  // empty for all
}

// browsers is the form of the file that lists the browsers.
type browsers struct {
	Browsers []Browser `yaml:"browsers"`
}

const browserComment = "# Browsers that get notifications, as they have asked for on the web page. The addresses are secret.\n"

// maxBrowsers bounds the number of browsers.
const maxBrowsers = 20

// browserFile is where the browsers are kept.
func (c *Config) browserFile() pageFile {
	return c.pageFile("browsers.yaml", "browsers", browserComment, 0o600)
}

// pushKeys is the form of the keys of a browser, see webpush.ParseKeys.
var pushKeys = regexp.MustCompile(`^[A-Za-z0-9_-]{87}=?\.[A-Za-z0-9_-]{22}(==)?$`)

// webhook returns the webhook that notifies a browser. Its name does not tell the address.
func (b *Browser) webhook() Webhook {
	sum := sha256.Sum256([]byte(b.Endpoint))
	return Webhook{
		Name: "browser-" + hex.EncodeToString(sum[:4]), URL: b.Endpoint, Format: WebPush, Secret: b.Keys,
		Filter: WebhookFilter{Events: []string{"new"}, Cameras: b.Cameras, Labels: b.Labels},
	}
}

// check returns why a browser cannot be notified. Push services are on the internet: another address would have this device send requests
// into its own network.
func (b *Browser) check() error {
	u, err := url.Parse(b.Endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || len(b.Endpoint) > 2048 {
		return errors.New("the address of the push service must begin with https://")
	}
	if net.ParseIP(u.Hostname()) != nil || u.Hostname() == "localhost" {
		return errors.New("the address of the push service must have a name of the internet")
	}
	if !pushKeys.MatchString(b.Keys) {
		return errors.New("the keys of the browser are damaged (subscribe again)")
	}
	return nil
}

// readBrowsers reads the browsers.
func readBrowsers(file pageFile) (all browsers, err error) {
	err = file.read(&all)
	for i := 0; err == nil && i < len(all.Browsers); i++ {
		err = all.Browsers[i].check()
	}
	if err != nil {
		return browsers{}, fmt.Errorf("browsers with notifications: %s: %w (remove it, and subscribe again on the page)", file.path, message(err))
	}
	return all, nil
}

// applyBrowsers appends a webhook for each browser.
func (l *layers) applyBrowsers() {
	file := l.browserFile()
	all, err := readBrowsers(file)
	if err != nil {
		l.wrong(location{source: ofNone}, err)
		return
	}
	for i := range all.Browsers {
		l.at[fmt.Sprintf("webhooks[%d]", len(l.Webhooks))] = location{source: ofNone, name: file.path}
		l.Webhooks = append(l.Webhooks, all.Browsers[i].webhook())
	}
}

// Browsers reads and changes the browsers that get notifications. Changes are in force after the next reload. Goroutines may share it.
type Browsers struct {
	Sources *Sources

	mutex sync.Mutex
}

// Add adds a browser, or changes what it gets.
func (b *Browsers) Add(browser Browser) error {
	if err := browser.check(); err != nil {
		return err
	}
	return b.change(func(all []Browser) ([]Browser, error) {
		all = without(all, browser.Endpoint)
		if len(all) >= maxBrowsers {
			return nil, fmt.Errorf("%d browsers get notifications, which is the limit: remove one on its own page first", maxBrowsers)
		}
		return append(all, browser), nil
	})
}

// Remove removes a browser. It is no error if there is none.
func (b *Browsers) Remove(endpoint string) error {
	return b.change(func(all []Browser) ([]Browser, error) { return without(all, endpoint), nil })
}

func without(all []Browser, endpoint string) []Browser {
	return slices.DeleteFunc(slices.Clone(all), func(b Browser) bool { return b.Endpoint == endpoint })
}

func (b *Browsers) change(next func([]Browser) ([]Browser, error)) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	l := b.Sources.configured()
	if err := l.err(); err != nil {
		return err
	}
	file := l.browserFile()
	all, err := readBrowsers(file)
	if err != nil {
		return err
	}
	changed, err := next(all.Browsers)
	if err != nil {
		return err
	}
	return file.save(browsers{changed})
}
