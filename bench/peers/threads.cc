
/*
 * A gateway as people usually start one: C++, gRPC's synchronous server, a
 * thread for each stream.
 *
 *     threads LISTEN_PORT UPSTREAM_PORT...
 *
 * It does what a careful author of such a gateway would do: one channel per
 * replica, the prompt's hash picks the first replica, and a stream whose
 * replica fails continues at the next one after the tokens already delivered,
 * each token once.  It has no health checks, no queue, no breaker.  It stands
 * for the design, not for gRPC at its best.
 */

#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "llmgateway.grpc.pb.h"

using llmgateway::GenerateRequest;
using llmgateway::GenerateResponse;
using llmgateway::InferRequest;
using llmgateway::InferResponse;
using llmgateway::LLMReplica;


class Gateway final : public llmgateway::InferenceGateway::Service {
public:
    explicit Gateway(const std::vector<std::string> &ports)
    {
        for (const auto &port : ports) {
            grpc::ChannelArguments  arguments;

            arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
            replicas_.push_back({"127.0.0.1:" + port,
                LLMReplica::NewStub(grpc::CreateCustomChannel(
                    "127.0.0.1:" + port, grpc::InsecureChannelCredentials(),
                    arguments))});
        }
    }

    grpc::Status Infer(grpc::ServerContext *context,
        const InferRequest *request,
        grpc::ServerWriter<InferResponse> *writer) override
    {
        int     delivered = 0;
        size_t  first = std::hash<std::string>()(request->prompt());

        for (size_t tried = 0; tried < 2 * replicas_.size(); tried++) {
            int             before = delivered;
            const Replica  &replica =
                replicas_[(first + tried) % replicas_.size()];

            if (Attempt(context, replica, *request, writer, &delivered)) {
                return grpc::Status::OK;
            }

            if (context->IsCancelled()) {
                return grpc::Status::CANCELLED;
            }

            tried = delivered > before ? 0 : tried;
        }

        return {grpc::StatusCode::UNAVAILABLE, "no replica took it"};
    }

private:
    struct Replica {
        std::string                        id;
        std::unique_ptr<LLMReplica::Stub>  stub;
    };

    /* Whether the final token was delivered. */
    static bool Attempt(grpc::ServerContext *context, const Replica &replica,
        const InferRequest &request,
        grpc::ServerWriter<InferResponse> *writer, int *delivered)
    {
        GenerateRequest   generate;
        GenerateResponse  token;
        InferResponse     response;
        auto              attempt =
            grpc::ClientContext::FromServerContext(*context);

        generate.set_prompt(request.prompt());
        generate.set_max_tokens(request.max_tokens());
        generate.set_tokens_already_generated(*delivered);
        response.set_replica_id(replica.id);

        auto  reader = replica.stub->Generate(attempt.get(), generate);

        while (reader->Read(&token)) {
            response.set_token(token.token());
            response.set_is_final(token.is_final());

            if (!writer->Write(response)) {
                attempt->TryCancel();
                reader->Finish();
                return false;
            }

            ++*delivered;

            if (token.is_final()) {
                reader->Finish();
                return true;
            }
        }

        reader->Finish();

        return false;
    }

    std::vector<Replica>  replicas_;
};


int
main(int argc, char **argv)
{
    int                       port = 0;
    grpc::ServerBuilder       builder;
    std::vector<std::string>  ports(argv + (argc > 2 ? 2 : argc),
                                    argv + argc);

    if (ports.empty()) {
        std::cerr << "usage: threads LISTEN_PORT UPSTREAM_PORT...\n";
        return 2;
    }

    Gateway  gateway(ports);

    builder.AddListeningPort(std::string("127.0.0.1:") + argv[1],
                             grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&gateway);

    auto  server = builder.BuildAndStart();

    if (server == nullptr || port == 0) {
        std::cerr << "threads: cannot listen on " << argv[1] << "\n";
        return 1;
    }

    server->Wait();

    return 0;
}
