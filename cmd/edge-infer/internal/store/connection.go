package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// readConnections is the number of queries that run at once.
const readConnections = 4

// connection is the writer's connection to the database. Statements are prepared once.
type connection struct {
	pool       *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

// openConnection opens the database for writing. The write-ahead log is synced with every transaction, because an event that was published
// must be there after a power cut. A transaction holds what has gathered during the one before, so that a slow disk syncs less often.
func openConnection(path string) (*connection, error) {
	pool, err := openDatabase(path, url.Values{
		"mode": {"rwc"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_busy_timeout": {"5000"}, "_cache_size": {"-4096"},
	})
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	c := &connection{pool: pool, conn: conn, statements: map[string]*sql.Stmt{}}
	// A reader that stays may let the log grow; it shrinks again afterwards.
	if err := c.script("PRAGMA journal_size_limit = 16777216"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// openReaders opens the database for queries.
func openReaders(path string) (*sql.DB, error) {
	db, err := openDatabase(path, url.Values{"mode": {"ro"}, "_query_only": {"1"}, "_busy_timeout": {"5000"}, "_cache_size": {"-2048"}})
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readConnections)
	db.SetMaxIdleConns(readConnections)
	return db, nil
}

func openDatabase(path string, options url.Values) (*sql.DB, error) {
	address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}
	return sql.Open("sqlite3", address.String())
}

// script runs statements that are not prepared.
func (c *connection) script(text string) error {
	_, err := c.conn.ExecContext(context.Background(), text)
	return err
}

func (c *connection) prepared(query string) (*sql.Stmt, error) {
	if statement := c.statements[query]; statement != nil {
		return statement, nil
	}
	statement, err := c.conn.PrepareContext(context.Background(), query)
	if err == nil {
		c.statements[query] = statement
	}
	return statement, err
}

func (c *connection) exec(query string, arguments ...any) (sql.Result, error) {
	statement, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return statement.Exec(arguments...)
}

func (c *connection) query(query string, arguments ...any) (*sql.Rows, error) {
	statement, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return statement.Query(arguments...)
}

// row reads the first row of a query; sql.ErrNoRows if there is none.
func (c *connection) row(query string, arguments []any, to ...any) error {
	statement, err := c.prepared(query)
	if err != nil {
		return err
	}
	return statement.QueryRow(arguments...).Scan(to...)
}

// transaction runs apply in a transaction. When it returns nil, the changes are on disk.
func (c *connection) transaction(apply func() error) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := apply()
	if err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil {
		_, _ = c.exec("ROLLBACK") // SQLite has done so already after some errors
	}
	return err
}

// close closes the connection. It is safe on one that has failed.
func (c *connection) close() error {
	for _, statement := range c.statements {
		_ = statement.Close() // the connection goes as well
	}
	return errors.Join(c.conn.Close(), c.pool.Close())
}
