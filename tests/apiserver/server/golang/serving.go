// Where the server listens, with which certificate, and the kubeconfig that
// tells clients both.
//
// The certificate is made once per data folder, so that a restarted server is
// still the one its clients trust.
package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// caFile is the certificate of the authority that signed the server's own.
func caFile(dataDir string) string {
	return filepath.Join(dataDir, "ca.crt")
}

// serveOn makes the listener and, in a new data folder, the certificates.
func serveOn(serving *options.SecureServingOptionsWithLoopback, dataDir string, port int) error {
	listener, err := listen(port)
	if err != nil {
		return err
	}
	serving.Listener = listener
	serving.BindAddress = net.IPv4(127, 0, 0, 1)
	serving.ServerCert.CertDirectory = dataDir
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return err
	}
	return writeCA(serving.ServerCert.CertKey.CertFile, caFile(dataDir))
}

// listen binds the port, or finds a free one for 0.
//
// It looks below the range that Linux gives to outgoing connections. A port
// from that range could be taken while the server is down between a kill and
// a restart; worse, a client that keeps on dialling it could be given it as
// its own end, and TCP would connect the client to itself.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return listenOn(port)
	}
	for range 100 {
		if listener, err := listenOn(20000 + rand.IntN(12000)); err == nil {
			return listener, nil
		}
	}
	return listenOn(0)
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// writeCA copies the last certificate of a chain into a file of its own.
func writeCA(chainFile, file string) error {
	chain, err := os.ReadFile(chainFile)
	if err != nil {
		return err
	}
	var last *pem.Block
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		last = block
	}
	if last == nil {
		return errors.New("no certificate in " + chainFile)
	}
	return replaceFile(file, pem.EncodeToMemory(last))
}

// writeKubeconfig names the server, its authority and a token nobody checks
// (some clients refuse to work without any credentials).
func writeKubeconfig(file, url, ca string) error {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	const name = "aioinformer-test"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "nobody-checks-this"}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return replaceFile(file, content)
}

// replaceFile never lets a reader see half a file, and leaves an equal file
// alone.
func replaceFile(file string, content []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return nil
	}
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
