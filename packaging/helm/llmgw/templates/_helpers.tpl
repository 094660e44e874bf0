{{/* What several templates need.  Where a pool is spoken of, the argument is
     (dict "root" $ "engine" ENTRY), with the entry made whole by llmgw.engine. */}}

{{- define "llmgw.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 30 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "llmgw.selector" -}}
app.kubernetes.io/name: llmgw
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "llmgw.labels" -}}
{{ include "llmgw.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* An entry of `engines`, with what it does not say itself, as YAML. */}}
{{- define "llmgw.engine" -}}
{{- toYaml (mergeOverwrite (deepCopy .root.Values.engineDefaults) .engine) -}}
{{- end -}}

{{- define "llmgw.image" -}}
{{- $image := index .root.Values.images .image -}}
image: {{ printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}

{{- define "llmgw.keyringSecret" -}}
{{- if .Values.keyring.keys -}}
{{- include "llmgw.fullname" . }}-keyring
{{- else -}}
{{- required "keyring.existingSecret or keyring.keys: gossip needs a keyring (docs/kubernetes.md)" .Values.keyring.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* Of each container that runs a program of ours. */}}
{{- define "llmgw.confined" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Of each pod.  A Secret is root's, and readable by fsGroup. */}}
{{- define "llmgw.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* With a newline before each line, and nothing where nothing is said. */}}
{{- define "llmgw.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with index $.place $key }}
{{- printf "%s:%s" $key (toYaml . | nindent 2) | nindent 6 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "llmgw.podName" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end -}}

{{/* What each agent is told, whatever its role. */}}
{{- define "llmgw.agentArgs" -}}
- --id=$(POD_NAME)
- --cluster={{ include "llmgw.fullname" . }}
- --gossip=$(POD_IP):7946
- --join={{ include "llmgw.fullname" . }}-gossip:7946
- --keyring=/etc/llmgw/gossip/gossip.keys
- --control=/run/llmgw/agent.sock
{{- end -}}

{{/* A sidecar that starts before what needs it, and ends behind that. */}}
{{- define "llmgw.agentProbes" -}}
startupProbe:
  tcpSocket: {port: gossip}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  tcpSocket: {port: gossip}
  periodSeconds: 10
  failureThreshold: 3
{{- end -}}

{{/* The keyring, the files of TLS, sockets in memory. */}}
{{- define "llmgw.volumes" -}}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
- name: gossip
  secret: {secretName: {{ include "llmgw.keyringSecret" .root }}, defaultMode: 0400}
{{- if .root.Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ include "llmgw.fullname" .root }}-{{ .name }}-tls, defaultMode: 0400}
{{- end }}
{{- end -}}

{{- define "llmgw.mounts" -}}
- {name: run, mountPath: /run/llmgw}
{{- if .gossip }}
- {name: gossip, mountPath: /etc/llmgw/gossip, readOnly: true}
{{- end }}
{{- if .root.Values.tls.enabled }}
- {name: tls, mountPath: /etc/llmgw/tls, readOnly: true}
{{- end }}
{{- end -}}

{{/* Whether some pool may be away altogether: then gateways have to take requests
     without any engine, and hold them. */}}
{{- define "llmgw.fromZero" -}}
{{- range .Values.engines -}}
{{- $engine := fromYaml (include "llmgw.engine" (dict "root" $ "engine" .)) -}}
{{- if and $engine.autoscaling.enabled (eq (int $engine.autoscaling.minReplicas) 0) -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}
