{{/* nginx.conf of a gateway. */}}
{{- define "llmgw.nginxConf" -}}
load_module /usr/lib/nginx/modules/ngx_http_llmgw_module.so;
worker_processes {{ .Values.gateway.workers }};
worker_rlimit_core 0;
worker_shutdown_timeout {{ .Values.gateway.drainSeconds }}s;
daemon off;
pid /run/llmgw/nginx.pid;
error_log stderr info;
{{- with .Values.gateway.config.main }}
{{ . }}
{{- end }}

events { worker_connections 16384; }

http {
    access_log {{ .Values.gateway.accessLog }};
    client_body_temp_path /tmp/body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;
    keepalive_requests 1000000;
{{- if .Values.clientKeys.existingSecret }}
    llmgw_keys /etc/llmgw/keys/keys zone=keys:{{ .Values.clientKeys.zone }} gateways={{ .Values.gateway.replicas }};
{{- end }}
{{- with .Values.gateway.config.http }}
{{ . | indent 4 }}
{{- end }}

    upstream llm {
        llmgw_members /run/llmgw/members;
{{- with .Values.gateway.queue }}
        llmgw_queue {{ int .size }} timeout={{ .timeout }} hold={{ .hold }};
{{- end }}
{{- if .Values.tls.enabled }}
        llmgw_ssl on;
        llmgw_ssl_certificate /etc/llmgw/tls/tls.crt;
        llmgw_ssl_certificate_key /etc/llmgw/tls/tls.key;
        llmgw_ssl_trusted_certificate /etc/llmgw/tls/ca.crt;
{{- end }}
{{- with .Values.gateway.config.upstream }}
{{ . | indent 8 }}
{{- end }}
    }

    server {
        listen 8080 backlog=4096;
{{- with .Values.gateway.config.server }}
{{ . | indent 8 }}
{{- end }}

        location / {
            client_max_body_size 63m;
            llmgw_openai llm;
{{- range .Values.engines }}
{{- with get . "model" }}
            llmgw_model {{ . }};
{{- end }}
{{- end }}
{{- with .Values.gateway.config.location }}
{{ . | indent 12 }}
{{- end }}
        }

        location = /ready { llmgw_ready; access_log off; }
        location = /alive { access_log off; return 200; }
    }

    # Only the pod itself sees status and dashboard: kubectl port-forward.
    server {
        listen 8081;
        access_log off;
        location = /metrics   { llmgw_metrics access=any; }
        location = /status    { llmgw_status; }
        location = /dashboard { llmgw_dashboard; }
    }
}
{{- end -}}
