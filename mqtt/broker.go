package mqtt

import (
	"cmp"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Broker is the embedded MQTT broker, for machines that have no other. Fill in the exported fields and Open it.
type Broker struct {
	Address string // 127.0.0.1:1883 when empty
	// User and Password are asked of every client when User is set.
	User         string
	Password     Secret
	PasswordFile string
	TLS          TLS          // TLS when CertificateFile is set, clients must show a certificate when CAFile is set too
	Logger       *slog.Logger // slog.Default when nil

	server  *mochi.Server
	address string
}

// Open listens and serves until Close.
func (b *Broker) Open() error {
	address := cmp.Or(b.Address, "127.0.0.1:1883")
	if b.Logger == nil {
		b.Logger = slog.Default()
	}
	password, err := readSecret(b.Password, b.PasswordFile)
	if err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	var config *tls.Config
	if b.TLS.CertificateFile != "" {
		files, err := b.TLS.load()
		if err != nil {
			return fmt.Errorf("open embedded broker: %w", err)
		}
		if files.RootCAs != nil {
			files.ClientCAs, files.ClientAuth = files.RootCAs, tls.RequireAndVerifyClientCert
		}
		config = files
	}
	server := mochi.New(&mochi.Options{Logger: quiet(b.Logger)})
	if err := server.AddHook(&login{user: b.User, password: password}, nil); err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	listener, err := listen(address, config)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("open embedded broker: %w (if that is a broker, publish to it with --mqtt tcp://%s, or choose another port)",
			err, address)
	}
	if err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	if err := server.AddListener(listener); err != nil {
		server.Close()
		return fmt.Errorf("open embedded broker: %w", err)
	}
	if err := server.Serve(); err != nil {
		server.Close()
		return fmt.Errorf("open embedded broker: %w", err)
	}
	b.server, b.address = server, listener.Address()
	if b.User == "" && b.TLS.CAFile == "" && !loopback(b.address) {
		b.Logger.Warn("embedded broker takes anyone on the network, set a user and password", "address", b.address)
	}
	return nil
}

// loopback reports whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// Addr is host:port of the listener, with the port that was chosen when Address asked for port 0. It is valid after Open.
func (b *Broker) Addr() string { return b.address }

// URL is the address for clients on this machine.
func (b *Broker) URL() string {
	if b.TLS.CertificateFile != "" {
		return "tls://" + b.address
	}
	return "tcp://" + b.address
}

// Close ends all connections. It is idempotent and safe on a broker that was never opened.
func (b *Broker) Close() error {
	if b.server == nil {
		return nil
	}
	server := b.server
	b.server = nil
	if err := server.Close(); err != nil {
		return fmt.Errorf("close embedded broker: %w", err)
	}
	return nil
}

// login lets clients in by user and password, or all when no user is set, and to every topic.
type login struct {
	mochi.HookBase
	user, password string
}

func (l *login) ID() string { return "login" }

func (l *login) Provides(event byte) bool {
	return event == mochi.OnConnectAuthenticate || event == mochi.OnACLCheck
}

func (l *login) OnConnectAuthenticate(_ *mochi.Client, p packets.Packet) bool {
	if l.user == "" {
		return true
	}
	user := subtle.ConstantTimeCompare(p.Connect.Username, []byte(l.user))
	password := subtle.ConstantTimeCompare(p.Connect.Password, []byte(l.password))
	return user&password == 1
}

func (l *login) OnACLCheck(*mochi.Client, string, bool) bool { return true }
