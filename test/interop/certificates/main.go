// Certificates of a control plane on the loopback: one authority, and an identity for each of those who speak with each
// other. Prints nothing; the directory is the first argument, the name of the node the second, and those of further nodes
// come after it.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 30 * 24 * time.Hour

type identity struct {
	file         string
	name         string
	organization string
	isServer     bool
}

func identities(node string, others []string) []identity {
	all := []identity{
		{"kube-apiserver", "kube-apiserver", "", true},
		{"etcd", "etcd", "", true},
		{"etcd-client", "kube-apiserver", "", false},
		{"admin", "admin", "system:masters", false},
		{"kube-controller-manager", "system:kube-controller-manager", "", false},
		{"kube-scheduler", "system:kube-scheduler", "", false},
		{"node", "system:node:" + node, "system:nodes", false},
	}
	for _, other := range others {
		all = append(all, identity{"node-" + other, "system:node:" + other, "system:nodes", false})
	}
	return all
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: certificates <directory> <node name> [<node name>...]")
		os.Exit(64)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(directory, node string, others []string) error {
	authorityKey, err := newKey(filepath.Join(directory, "authority.key"))
	if err != nil {
		return err
	}
	authority := template("mooring test cluster", "")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if err := sign(directory, "authority", authority, authority, authorityKey, authorityKey); err != nil {
		return err
	}
	for _, one := range identities(node, others) {
		key, err := newKey(filepath.Join(directory, one.file+".key"))
		if err != nil {
			return err
		}
		if err := sign(directory, one.file, certificate(one), authority, key, authorityKey); err != nil {
			return err
		}
	}
	_, err = newKey(filepath.Join(directory, "service-account.key"))
	return err
}

func certificate(one identity) *x509.Certificate {
	made := template(one.name, one.organization)
	made.KeyUsage = x509.KeyUsageDigitalSignature
	made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if one.isServer {
		made.ExtKeyUsage = append(made.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		made.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		made.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	}
	return made
}

func template(name, organization string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err)
	}
	subject := pkix.Name{CommonName: name}
	if organization != "" {
		subject.Organization = []string{organization}
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime)}
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func sign(directory, file string, made, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, made, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(filepath.Join(directory, file+".crt"), text, 0o644)
}
